package analyst_test

import (
	"context"
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
	"github.com/benchmark-ai/bai/services/points"
)

// versionChange makes two tasks slow between the same two versions, and returns the events of both that nobody has heard yet: the incidents of
// both belong to one group.
func (w *fixture) versionChange() (first, second event.Summarised) {
	w.t.Helper()
	put := func(task, version string, rate float64) event.Summarised {
		text := strings.Replace(descriptor(strings.Replace(tooSlow, "\nnotify", "\nfor = 1\nnotify", 1)), `"rates"`, `"`+task+`"`, 1)
		return w.put(text, rate, func(r *store.Run) { r.Labels = map[string]string{store.LabelTask: task, "version": version} })
	}
	w.deliver(nil, put("one", "1", 120))
	w.deliver(nil, put("two", "1", 120))
	return put("one", "2", 90), put("two", "2", 90)
}

// settleUpdates lets the clock strike until receivers have heard of all that joined their groups.
func (w *fixture) settleUpdates() {
	w.t.Helper()
	for range 2 {
		w.now = w.now.Add(time.Hour + time.Minute)
		w.tick()
	}
}

// noticedTasks returns the tasks of the incidents in all notices that receivers have of groups that fire, one for each incident in each notice.
func (w *fixture) noticedTasks() []string {
	w.t.Helper()
	var all []string
	for _, d := range docs[notice.Delivery](w, store.KindDelivery) {
		for _, i := range d.Notice.Incidents {
			all = append(all, fmt.Sprintf("%s %s of %s", d.Notice.Receiver, d.Notice.Became, i.Series.Task))
		}
	}
	slices.Sort(all)
	return all
}

// bothTasks are the incidents of versionChange, each in one notice of each receiver.
func bothTasks() []string {
	return []string{"ops firing of one", "ops firing of two", "perf firing of one", "perf firing of two"}
}

func TestTasksThatRaceForTheFirstNoticeOfAGroupAreBothInANotice(t *testing.T) {
	for at := 1; ; at++ {
		w := newFixture(t)
		first, second := w.versionChange()
		p := crashtest.New(0, false)
		p.BeforeEffect = func(effect int) {
			if effect == at {
				w.deliver(nil, second)
			}
		}
		w.deliver(p, first)
		if at > p.Effects() {
			return
		}
		w.settleUpdates()
		want(t, fmt.Sprint("the other task comes before effect ", at), bothTasks(), w.noticedTasks())
	}
}

func TestTasksWhoseAnalystsAreKilledOneAfterTheOtherAreBothInANotice(t *testing.T) {
	for effect, survived := 1, false; !survived; effect += 5 { // all of them take seconds
		for q := range crashtest.Points() {
			w := newFixture(t)
			first, second := w.versionChange()
			p := crashtest.New(effect, true)
			w.deliver(p, first)
			w.deliver(q, second)
			w.deliver(nil, first)
			w.deliver(nil, second)
			w.settleUpdates()
			want(t, fmt.Sprintf("task one %s, task two %s", p, q), bothTasks(), w.noticedTasks())
			survived = !p.Dead()
		}
	}
}

// shortFault makes both series of a task bad in one run, and returns the event of that run, which nobody has heard yet. Recovers stores the
// points of the runs after it, which are good, and passes their events to an analyst, once both incidents fire, and reports whether it has.
func (w *fixture) shortFault() (bad event.Summarised, recovers func() bool) {
	w.t.Helper()
	text := descriptor(strings.Replace(tooSlow, "\nnotify", "\nfor = 1\nnotify", 1),
		strings.NewReplacer("100", "110", "\nnotify", "\nfor = 1\nnotify").Replace(tooSlow))
	w.deliver(nil, w.put(text, 120))
	bad = w.put(text, 90)
	done := false
	return bad, func() bool {
		if done || !slices.Equal(w.incidents(), []string{"below rate firing from r02", "below rate firing from r02"}) {
			return done
		}
		done = true
		var good []event.Summarised
		for _, rate := range []float64{120, 121, 122} {
			good = append(good, w.put(text, rate))
		}
		for _, ev := range good {
			w.deliver(nil, ev)
		}
		return true
	}
}

// wantShortFault reports notices that are not those of the beginning and the end of shortFault.
func (w *fixture) wantShortFault(when string) {
	w.t.Helper()
	want(w.t, when, []string{
		"ops firing 2 and 0 more", "ops resolved 2 and 0 more", "perf firing 2 and 0 more", "perf resolved 2 and 0 more",
	}, w.sizes())
}

func TestIncidentsThatEndAfterTheirAnalystWasKilledAreAllInBothNotices(t *testing.T) {
	early := 0
	for p := range crashtest.Points() {
		w := newFixture(t)
		bad, recovers := w.shortFault()
		w.deliver(p, bad)
		if recovers() && p.Dead() {
			early++
		}
		w.deliver(nil, bad)
		recovers()
		w.wantShortFault(p.String())
	}
	if early < 3 {
		t.Errorf("%d deaths between the incidents and the end of their analysis", early)
	}
}

func TestIncidentsThatEndWhileTheirAnalystGoesOnAreAllInBothNotices(t *testing.T) {
	for at := 1; ; at++ {
		w := newFixture(t)
		bad, recovers := w.shortFault()
		p := crashtest.New(0, false)
		p.BeforeEffect = func(effect int) {
			if effect == at {
				recovers()
			}
		}
		w.deliver(p, bad)
		if at > p.Effects() {
			return
		}
		recovers()
		w.wantShortFault(fmt.Sprint("the ends come before effect ", at))
	}
}

// lateStore is a store whose series lack the points of a run as long as it is hidden.
type lateStore struct {
	analyst.Store

	run    string
	hidden func() bool
}

// Points implements store.PointReader.
func (l lateStore) Points(ctx context.Context, q store.PointQuery, limit int) ([]store.Point, error) {
	all, err := l.Store.Points(ctx, q, limit)
	if !l.hidden() {
		return all, err
	}
	return slices.DeleteFunc(all, func(p store.Point) bool { return p.Run == l.run }), err
}

// putBoth is put for a run that also has a value of metric speed.
func (w *fixture) putBoth(value float64) event.Summarised {
	w.t.Helper()
	once := "\nnotify"
	text := descriptor(strings.Replace(tooSlow, once, "\nfor = 1"+once, 1), strings.NewReplacer("rate", "speed", once, "\nfor = 1"+once).Replace(tooSlow))
	ev := w.put(text, value)
	r, err := w.store.Run(w.t.Context(), ev.Run)
	if err != nil {
		w.t.Fatal(err)
	}
	both := &store.Summaries{Run: r.ID, Complete: true}
	for _, name := range []string{"rate", "speed"} {
		both.Summaries = append(both.Summaries, store.Summary{Metric: name, N: 1, Median: store.Float(value), Direction: event.Higher})
	}
	ev.Revision = 2
	if err := w.store.PutPoints(w.t.Context(), points.Of(r, points.Results{Summaries: both, Revision: ev.Revision})); err != nil {
		w.t.Fatal(err)
	}
	return ev
}

func TestARunThatBecomesVisibleAmidAnotherAnalysisHasAllItsIncidentsInTheNotice(t *testing.T) {
	for series := range 3 {
		for at := 1; ; at++ {
			w := newFixture(t)
			first := w.putBoth(120)
			w.deliver(nil, first)
			bad := w.putBoth(90)
			read := 0
			hidden := func() bool {
				read++
				return read <= series && len(w.incidents()) == 0 // who sees an incident sees its points
			}
			p := crashtest.New(0, false)
			p.BeforeEffect = func(effect int) {
				if effect != at {
					return
				}
				if err := w.handle(w.deps(lateStore{w.store, bad.Run, hidden}), first); err != nil {
					t.Fatal(err)
				}
			}
			w.deliver(p, bad)
			if at > p.Effects() {
				break
			}
			want(t, fmt.Sprintf("%d series lack the run before effect %d", series, at),
				[]string{"ops firing 2 and 0 more", "perf firing 2 and 0 more"}, w.sizes())
		}
	}
}
