package analyst_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/analyst"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// notifying is a descriptor that notifies some receivers of the end of a run.
func notifying(names string, alarms ...string) string {
	return strings.Replace(descriptor(alarms...), "[info]\n", "[info]\nnotify = ["+names+"]\n", 1)
}

// toOwners are receivers of which each owner has one.
func toOwners(_, owner string, names []string) (all []string) {
	for _, name := range names {
		if name == "submitter" {
			name = "to-" + owner
		}
		all = append(all, name)
	}
	return all
}

// listenForOwners starts an analyst that has a receiver for each owner.
func (w *fixture) listenForOwners() *fixture {
	d := w.deps(w.store)
	d.Receivers = toOwners
	analyst.New(analyst.Settings{}, d)
	return w
}

// ends describes the notices of ends, one a line.
func (w *fixture) ends() (all []string) {
	w.t.Helper()
	for _, d := range docs[notice.Delivery](w, store.KindDelivery) {
		for _, e := range d.Notice.Ends {
			text := fmt.Sprintf("%s: %s %s", d.Notice.Receiver, e.ID, e.Outcome)
			for _, n := range e.Numbers {
				text += fmt.Sprintf(" %s=%g", n.Metric, n.Value)
			}
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all
}

func TestTheEndOfARunIsNotifiedOfOnceWithItsNumbers(t *testing.T) {
	w := newFixture(t).listenForOwners()
	ev := w.put(notifying(`"submitter", "perf"`), 100, func(r *store.Run) { r.Owner = "ann" })
	w.bus.PublishAndWait(ev)
	w.run(notifying(`"submitter"`), 0, func(r *store.Run) { r.Owner = "bob"; failed(r) })
	before := w.ends()
	want(t, "ends", []string{
		"perf: r01 succeeded rate=100 run.duration=9 run.queued=1", "to-ann: r01 succeeded rate=100 run.duration=9 run.queued=1", "to-bob: r02 failed",
	}, before)
	w.bus.Replay()
	ev.Revision, ev.ID = 0, "late"
	w.bus.PublishAndWait(ev)
	want(t, "ends after a replay and late samples", before, w.ends())
}

func TestARunWithoutMetricsOfItsOwnHasItsTimes(t *testing.T) {
	w := newFixture(t).listenForOwners()
	text, _, _ := strings.Cut(notifying(`"perf"`), "[output]")
	w.run(text, -1)
	want(t, "ends", []string{"perf: r01 succeeded run.duration=9 run.queued=1"}, w.ends())
}

func TestEndsThatAreNoNewsAreNotNotifiedOf(t *testing.T) {
	for name, change := range map[string]func(*store.Run){
		"a run of a set":                  func(r *store.Run) { r.Set = "s" },
		"a run that confirms an incident": func(r *store.Run) { r.Confirms = "i" },
		"a run that has not ended":        func(r *store.Run) { r.Outcome, r.Ended, r.Phase = "", nil, event.PhaseRunning },
		"a run whose alarms alone notify": func(r *store.Run) { r.Descriptor = descriptor(tooSlow) },
		"a run that ended long ago":       func(r *store.Run) { r.Ended = new(r.Ended.Add(-8 * 24 * time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t).listenForOwners()
			w.run(notifying(`"perf"`), 100, change)
			want(t, "ends", nil, w.ends())
		})
	}
}

func TestTheEndOfARunIsNotifiedOfWhereverAnAnalystDies(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		ev := w.put(notifying(`"perf", "ops"`, tooSlow), 100)
		w.deliver(p, ev)
		w.deliver(nil, ev)
		want(t, p.String(), []string{"ops: r01 succeeded rate=100 run.duration=9 run.queued=1", "perf: r01 succeeded rate=100 run.duration=9 run.queued=1"}, w.ends())
	}
}

func TestTheSubmitterOfAnIncidentIsThatOfItsFirstRun(t *testing.T) {
	w := newFixture(t).listenForOwners()
	alarm := "[[alarms]]\nmetric = \"rate\"\nbelow = 100\nnotify = [\"submitter\"]\n"
	by := func(owner string) func(*store.Run) { return func(r *store.Run) { r.Owner = owner } }
	for _, rate := range []float64{120, 121, 122} {
		w.run(descriptor(alarm), rate, by("ann"))
	}
	w.run(descriptor(alarm), 90, by("bob"))
	w.run(descriptor(alarm), 91, by("cem"))
	want(t, "deliveries", []string{"to-bob firing waiting"}, w.deliveries())
}

func TestTheSubmitterOfWhatHasNoRunIsThatOfTheNewestRun(t *testing.T) {
	w := newFixture(t).listenForOwners()
	alarm := "[[alarms]]\nmetric = \"rate\"\nwhen = \"missing\"\nwithin = \"26h\"\nnotify = [\"submitter\"]\n"
	w.run(descriptor(alarm), 120, func(r *store.Run) { r.Owner = "ann" })
	w.run(descriptor(alarm), 120, func(r *store.Run) { r.Owner = "bob" })
	w.now = w.now.Add(27 * time.Hour)
	d := w.deps(w.store)
	d.Receivers = toOwners
	if err := analyst.Tick(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	want(t, "deliveries", []string{"to-bob firing waiting"}, w.deliveries())
}

func TestTheEndOfAnIncidentHasTheLabelsOfItsBeginning(t *testing.T) {
	of := func(commit string, at time.Duration) func(*store.Run) {
		return func(r *store.Run) {
			r.Labels["commit"] = commit
			if at > 0 {
				r.Created = begin.Add(at)
				r.Started, r.Ended = new(r.Created.Add(time.Second)), new(r.Created.Add(10*time.Second))
			}
		}
	}
	for p := range crashtest.Points() {
		w := newFixture(t)
		w.deliver(nil, w.put(descriptor(atOnce(tooSlow)), 120, of("good", 0)))
		bad := w.put(descriptor(atOnce(tooSlow)), 90, of("bad", 0))
		w.deliver(p, bad)
		w.deliver(nil, bad)
		w.deliver(nil, w.put(descriptor(atOnce(tooSlow)), 89, of("late", 12*time.Hour))) // the first bad run is another one now
		for i, rate := range []float64{120, 121, 122} {
			w.deliver(nil, w.put(descriptor(atOnce(tooSlow)), rate, of("mend", time.Duration(30+i)*time.Hour)))
		}
		var got []string
		for _, d := range docs[notice.Delivery](w, store.KindDelivery) {
			got = append(got, fmt.Sprintf("%s %s of %s since %s", d.Notice.Receiver, d.Notice.Became, d.Notice.Labels["commit"], d.Notice.Incidents[0].FirstBad.Run))
		}
		slices.Sort(got)
		want(t, p.String(), []string{
			"ops firing of bad since r02", "ops resolved of bad since r03", "perf firing of bad since r02", "perf resolved of bad since r03",
		}, got)
	}
}

func TestTheEndOfARunHasItsLabels(t *testing.T) {
	w := newFixture(t)
	w.deliver(nil, w.put(notifying(`"perf"`), 100, func(r *store.Run) { r.Labels["team"], r.Labels["commit"] = "a", "c0ffee" }))
	for _, d := range docs[notice.Delivery](w, store.KindDelivery) {
		of, at := d.Notice.Ends[0].Labels, d.Notice.Labels
		if of["team"] != "a" || of[store.LabelTask] != "rates" || len(at) != 1 || at["commit"] != "c0ffee" {
			t.Errorf("the end has labels %v, its notice %v", of, at)
		}
	}
	want(t, "ends", []string{"perf: r01 succeeded rate=100 run.duration=9 run.queued=1"}, w.ends())
}
