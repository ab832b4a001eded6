package analyst_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/confirm"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Alarms that runs confirm.
const (
	confirmedAlarm = "[[alarms]]\nmetric = \"rate\"\nbelow = 100\nnotify = [\"perf\"]\n[alarms.confirm]\ndeadline = \"60d\"\n"
	secondAlarm    = "[[alarms]]\nmetric = \"rate\"\nbelow = 99\nnotify = [\"ops\"]\n[alarms.confirm]\npairs = 8\ndeadline = \"60d\"\n"
)

// suspect runs the task until its rate was over the limit twice: runs have to confirm it.
func (w *fixture) suspect(alarms ...string) {
	w.t.Helper()
	for _, rate := range []float64{120, 121, 122, 90, 91} {
		w.deliver(nil, w.put(descriptor(alarms...), rate))
	}
}

// requests returns the requests for runs.
func (w *fixture) requests() (all []confirm.Request) {
	w.t.Helper()
	for _, r := range docs[confirm.Request](w, store.KindConfirmation) {
		all = append(all, r)
	}
	return all
}

// submitted stores that the next run of the only request was submitted, and its end with a value, as the gateway does, and returns the event
// that its points are stored.
func (w *fixture) submitted(old, next float64, changes ...func(*store.Run)) event.Summarised {
	w.t.Helper()
	r := w.requests()[0]
	p, _, _, err := store.Find[confirm.Progress](w.t.Context(), w.store, store.KindConfirmationRuns, confirm.Key(r.Namespace, r.ID))
	if err != nil {
		w.t.Fatal(err)
	}
	n := len(p.Runs)
	value := next
	if confirm.SideOf(r.ID, n) == incident.SideOld {
		value = old
	}
	ev := w.put(descriptor(), value, append(changes, func(run *store.Run) { run.Confirms = r.First })...)
	_, err = store.Update(w.t.Context(), w.store, store.KindConfirmationRuns, confirm.Key(r.Namespace, r.ID), func(p confirm.Progress, _ bool) (confirm.Progress, bool, error) {
		for i := range p.Runs {
			p.Runs[i].State = confirm.Succeeded
		}
		p.Runs = append(p.Runs, confirm.SubmittedRun{Ordinal: n, Run: ev.Run, State: confirm.Running}) // its end is not noted yet
		return p, true, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return ev
}

func TestRunsAreAskedForBeforeAnIncidentFires(t *testing.T) {
	w := newFixture(t)
	w.suspect(confirmedAlarm)
	want(t, "incidents", []string{"below rate confirming from r04"}, w.incidents())
	want(t, "deliveries", nil, w.deliveries())
	all := w.requests()
	if len(all) != 1 || all[0].Old != "r03" || all[0].New != "r04" || all[0].Pairs != 5 || all[0].MaxRuns != 15 || len(all[0].Incidents) != 1 {
		t.Errorf("%+v", all)
	}
}

func TestWhatTheRunsSayDecides(t *testing.T) {
	for name, tt := range map[string]struct {
		old, next  float64
		state      string
		deliveries []string
	}{
		"a regression":                  {120, 90, "firing", []string{"perf firing waiting"}},
		"noise":                         {120, 121, "dismissed", nil},
		"something outside has changed": {90, 91, "firing", []string{"perf firing waiting"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.suspect(confirmedAlarm)
			for n := range 10 {
				want(t, fmt.Sprint("before run ", n), []string{"below rate confirming from r04"}, w.incidents())
				ev := w.submitted(tt.old, tt.next)
				w.deliver(nil, ev)
				w.deliver(nil, ev)
			}
			want(t, "incidents", []string{"below rate " + tt.state + " from r04"}, w.incidents())
			want(t, "deliveries", tt.deliveries, w.deliveries())
			if all := w.requests(); len(all[0].Incidents) > 0 {
				t.Errorf("%+v", all)
			}
			for _, i := range docs[incident.Incident](w, store.KindIncident) {
				if i.Confirmation == nil || len(i.Confirmation.Runs) != 10 || i.Confirmation.Why == "" {
					t.Errorf("%+v", i.Confirmation)
				}
			}
		})
	}
}

func TestIncidentsOfOneChangeAreConfirmedByTheSameRuns(t *testing.T) {
	w := newFixture(t)
	w.suspect(confirmedAlarm, secondAlarm)
	all := w.requests()
	if len(all) != 1 || len(all[0].Incidents) != 2 || all[0].Pairs != 8 {
		t.Fatalf("%+v", all)
	}
	for range 12 {
		w.deliver(nil, w.submitted(120, 90))
	}
	want(t, "incidents", []string{"below rate firing from r04", "below rate firing from r04"}, w.incidents())
	wantNone(t, "incidents that wait for runs", len(w.requests()[0].Incidents))
}

func wantNone(t *testing.T, what string, got int) {
	t.Helper()
	if got != 0 {
		t.Errorf("%s: %d", what, got)
	}
}

func TestRunsThatTakeTooLongLeaveTheIncidentToThePoints(t *testing.T) {
	w := newFixture(t)
	w.suspect(confirmedAlarm)
	w.tick()
	want(t, "in time", []string{"below rate confirming from r04"}, w.incidents())
	w.now = w.now.Add(61 * 24 * time.Hour)
	w.tick()
	want(t, "after the deadline", []string{"below rate firing from r04"}, w.incidents())
	want(t, "deliveries", []string{"perf firing waiting"}, w.deliveries())
	w.tick()
	wantNone(t, "incidents that wait for runs", len(w.requests()[0].Incidents))
}

func TestRunsThatConfirmAreNoneOfTheTask(t *testing.T) {
	w := newFixture(t)
	w.suspect(confirmedAlarm, fails)
	for range 3 {
		w.deliver(nil, w.submitted(120, 90, failed))
	}
	want(t, "incidents", []string{"below rate confirming from r04"}, w.incidents())
	for _, s := range docs[incident.RuleSet](w, store.KindRuleSet) {
		if len(s.Rules) != 2 {
			t.Errorf("%+v", s)
		}
	}
}

func TestAnIncidentThatAUserAcknowledgesNeedsNoRuns(t *testing.T) {
	w := newFixture(t)
	w.suspect(confirmedAlarm)
	w.ack(incident.Ack{Reason: "a known regression", Wrong: true})
	w.tick()
	want(t, "incidents", []string{"below rate dismissed from r04"}, w.incidents())
	wantNone(t, "incidents that wait for runs", len(w.requests()[0].Incidents))
}

// confirmWith suspects and confirms an incident. A process that may be killed handles each event; if it is killed, another handles the same
// event again, and the next ones.
func (w *fixture) confirmWith(p *crashtest.Process) {
	w.t.Helper()
	step := func(ev event.Summarised) {
		if p != nil && !p.Dead() {
			if w.deliver(p, ev); !p.Dead() {
				return
			}
		}
		w.deliver(nil, ev)
	}
	for _, rate := range []float64{120, 121, 122, 90, 91} {
		step(w.put(descriptor(confirmedAlarm), rate))
	}
	for range 10 {
		step(w.submitted(120, 90))
	}
	w.tick()
	w.mend()
}

func TestAnAnalystThatIsKilledWhileRunsConfirmLeavesWhatIsMended(t *testing.T) {
	calm := newFixture(t)
	calm.confirmWith(nil)
	want(t, "deliveries", []string{"perf firing waiting"}, calm.deliveries())
	for p := range crashtest.Points() {
		w := newFixture(t)
		w.confirmWith(p)
		if diff := cmp.Diff(calm.undated(), w.undated()); diff != "" {
			t.Fatalf("%s (-calm +killed):\n%s", p, diff)
		}
	}
}

// lapse lets the clock strike after the deadline, first in a process that may be killed.
func (w *fixture) lapse(p *crashtest.Process) {
	w.t.Helper()
	w.suspect(confirmedAlarm)
	w.now = w.now.Add(61 * 24 * time.Hour)
	if p != nil {
		if err := analyst.Tick(w.t.Context(), w.deps(p.Store(w.store))); err != nil && !p.Dead() {
			w.t.Fatal(err)
		}
		if err := w.store.DeleteDoc(w.t.Context(), store.Doc{Kind: store.KindLease, Key: "analyst/clock"}); err != nil { // as if it had ended
			w.t.Fatal(err)
		}
	}
	w.tick()
	w.tick()
	w.mend()
}

func TestAClockThatIsKilledAfterTheDeadlineLeavesWhatIsMended(t *testing.T) {
	calm := newFixture(t)
	calm.lapse(nil)
	for p := range crashtest.Points() {
		w := newFixture(t)
		w.lapse(p)
		if diff := cmp.Diff(calm.undated(), w.undated()); diff != "" {
			t.Fatalf("%s (-calm +killed):\n%s", p, diff)
		}
	}
}

func TestAReplayWhileRunsConfirmAsksForNoOtherRuns(t *testing.T) {
	w := newFixture(t).listen()
	for _, rate := range []float64{120, 121, 122, 90, 91} {
		w.run(descriptor(confirmedAlarm), rate)
	}
	w.bus.PublishAndWait(w.submitted(120, 90))
	before := w.contents()
	w.bus.Replay()
	if diff := cmp.Diff(before, w.contents()); diff != "" {
		t.Errorf("after a replay (-before +after):\n%s", diff)
	}
	if !slices.Equal(w.incidents(), []string{"below rate confirming from r04"}) {
		t.Errorf("%q", w.incidents())
	}
}
