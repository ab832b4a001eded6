package analyst_test

import (
	"context"
	"errors"
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
		text := strings.Replace(descriptor(atOnce(tooSlow)), `"rates"`, `"`+task+`"`, 1)
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
	for p := range crashtest.Overtaken() {
		w := newFixture(t)
		first, second := w.versionChange()
		p.OvertakeWith(func() { w.deliver(nil, second) })
		w.deliver(p, first)
		w.deliver(nil, second)
		w.settleUpdates()
		want(t, fmt.Sprintf("task one %s by task two", p), bothTasks(), w.noticedTasks())
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
	text := descriptor(atOnce(tooSlow), strings.Replace(atOnce(tooSlow), "100", "110", 1))
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
	for p := range crashtest.Overtaken() {
		w := newFixture(t)
		bad, recovers := w.shortFault()
		p.OvertakeWith(func() { recovers() })
		w.deliver(p, bad)
		recovers()
		w.wantShortFault("the incidents' analyst " + p.String() + " by their ends")
	}
}

// endAmid has the beginning of an incident handled by a process that is overtaken, and its end, once the incident fires, by one that is
// killed meanwhile. It reports whether there was such an end.
func (w *fixture) endAmid(overtaken, killed *crashtest.Process) bool {
	w.t.Helper()
	text := descriptor(atOnce(tooSlow))
	w.deliver(nil, w.put(text, 120))
	bad := w.put(text, 90)
	var good []event.Summarised
	overtaken.OvertakeWith(func() {
		if !slices.Equal(w.incidents(), []string{"below rate firing from r02"}) {
			return
		}
		for _, rate := range []float64{120, 121, 122} {
			good = append(good, w.put(text, rate))
		}
		w.deliver(killed, good[0])
	})
	w.deliver(overtaken, bad)
	for _, ev := range good {
		w.deliver(nil, ev)
	}
	w.mend()
	return len(good) > 0
}

func TestAnEndWhoseAnalystIsKilledAmidThatOfTheBeginningHasItsNotice(t *testing.T) {
	for effect, deaths := 1, 1; deaths > 0; effect++ {
		deaths = 0
		for p := range crashtest.Overtaken() {
			q := crashtest.New(effect, false)
			if w := newFixture(t); w.endAmid(p, q) {
				want(t, fmt.Sprintf("the analyst of the beginning %s, that of the end %s", p, q), []string{
					"ops firing 1 and 0 more", "ops resolved 1 and 0 more", "perf firing 1 and 0 more", "perf resolved 1 and 0 more",
				}, w.sizes())
			}
			if q.Dead() {
				deaths++
			}
		}
		if effect == 1 && deaths < 5 {
			t.Errorf("%d deaths amid the analysis of the beginning", deaths)
		}
	}
}

// lateStore is a store that lacks some runs, with their points, as long as they are hidden.
type lateStore struct {
	analyst.Store

	runs   []string
	hidden func() bool // called once for each list
}

// lacks reports whether a list that hides runs lacks this one.
func (l lateStore) lacks(run string) bool { return slices.Contains(l.runs, run) }

// Points implements store.PointReader.
func (l lateStore) Points(ctx context.Context, q store.PointQuery, limit int) ([]store.Point, error) {
	all, err := l.Store.Points(ctx, q, limit)
	if l.hidden() {
		all = slices.DeleteFunc(all, func(p store.Point) bool { return l.lacks(p.Run) })
	}
	return all, err
}

// Runs implements store.RunReader.
func (l lateStore) Runs(ctx context.Context, f store.RunFilter, cursor string, limit int) ([]store.Run, string, error) {
	all, next, err := l.Store.Runs(ctx, f, cursor, limit)
	if l.hidden() {
		all = slices.DeleteFunc(all, func(r store.Run) bool { return l.lacks(r.ID) })
	}
	return all, next, err
}

// putBoth is put for a run that also has a value of metric speed.
func (w *fixture) putBoth(value float64) event.Summarised {
	w.t.Helper()
	ev := w.put(descriptor(atOnce(tooSlow), strings.Replace(atOnce(tooSlow), "rate", "speed", 1)), value)
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

// putSlow puts a good run of a task with two metrics and a bad one, whose event nobody has heard yet.
func (w *fixture) putSlow() (good, bad event.Summarised) {
	w.t.Helper()
	good = w.putBoth(120)
	w.deliver(nil, good)
	return good, w.putBoth(90)
}

// putFailures puts a good run of a task with two alarms about failures and two that fail, whose events nobody has heard yet; bad is the
// last one's.
func (w *fixture) putFailures() (good, bad event.Summarised) {
	w.t.Helper()
	text := descriptor(fails, strings.Replace(atOnce(fails), "1", "2", 1))
	good = w.put(text, 120)
	w.deliver(nil, good)
	w.put(text, 0, failed)
	return good, w.put(text, 0, failed)
}

func TestARunThatBecomesVisibleAmidAnotherAnalysisHasAllItsIncidentsInTheNotice(t *testing.T) {
	for series := range 3 {
		for p := range crashtest.Overtaken() {
			w := newFixture(t)
			good, bad := w.putSlow()
			read := 0
			hidden := func() bool {
				read++
				return read <= series && len(w.incidents()) == 0 // who sees an incident sees its points
			}
			p.OvertakeWith(func() {
				if err := w.handle(w.deps(lateStore{w.store, []string{bad.Run}, hidden}), good); err != nil {
					t.Fatal(err)
				}
			})
			w.deliver(p, bad)
			want(t, fmt.Sprintf("the analyst %s by one for which %d series lack the run", p, series),
				[]string{"ops firing 2 and 0 more", "perf firing 2 and 0 more"}, w.sizes())
		}
	}
}

func TestARunWhoseAnalystIsKilledAmidAnotherAnalysisHasAllItsIncidentsInTheNotice(t *testing.T) {
	for name, tt := range map[string]struct {
		put  func(w *fixture) (good, bad event.Summarised)
		want []string
	}{
		"slow":   {(*fixture).putSlow, []string{"ops firing 2 and 0 more", "perf firing 2 and 0 more"}},
		"failed": {(*fixture).putFailures, []string{"ops firing 2 and 0 more"}},
	} {
		for p := range crashtest.Points() {
			w := newFixture(t)
			good, bad := tt.put(w)
			read := false
			hidden := func() bool { // in the first list, and then the other analyst hears of the run
				if read {
					return false
				}
				read = true
				w.deliver(p, bad)
				return true
			}
			if err := w.handle(w.deps(lateStore{w.store, []string{"r02", "r03"}, hidden}), good); err != nil {
				t.Fatal(err)
			}
			w.deliver(nil, bad)
			want(t, fmt.Sprintf("%s: the analyst of the bad run %s", name, p), tt.want, w.sizes())
		}
	}
}

func TestAClockThatLacksARunLeavesTheAnalysisOfThatPending(t *testing.T) {
	for effect, dead := 1, true; dead; effect++ {
		w := newFixture(t)
		w.deliver(nil, w.put(descriptor(silence), 120))
		w.now = begin.Add(3 * day)
		w.tick()
		w.runs = 3
		ev := w.put(descriptor(silence), 121)
		w.now = begin.Add(3*day + 30*time.Second) // the clock leaves alone what has changed within a minute
		p := crashtest.New(effect, true)
		p.BeforeEffect = func(n int) {
			if n != effect {
				return
			}
			if err := analyst.Tick(t.Context(), w.deps(lateStore{w.store, []string{ev.Run}, func() bool { return true }})); err != nil {
				t.Fatal(err)
			}
		}
		w.deliver(p, ev)
		w.deliver(nil, ev)
		want(t, fmt.Sprintf("the analyst %s, and the clock is right before it", p), []string{"ops firing 1 and 0 more", "ops resolved 1 and 0 more"}, w.sizes())
		dead = p.Dead()
	}
}

func TestAnEndWhoseAnalystIsKilledHasItsNoticeAlthoughThatOfALaterRunIsKilledToo(t *testing.T) {
	for effect, dead := 1, true; dead; effect++ {
		for p := range crashtest.Points() {
			w := newFixture(t)
			w.deliver(nil, w.put(descriptor(silence), 120))
			w.now = begin.Add(3 * day)
			w.tick()
			w.runs = 3
			end := w.put(descriptor(silence), 121)
			w.deliver(p, end)
			q, later := crashtest.New(effect, true), w.put(descriptor(silence), 122)
			w.deliver(q, later)
			w.deliver(nil, end)
			w.deliver(nil, later)
			want(t, fmt.Sprintf("the analyst of the end %s, that of the later run %s", p, q),
				[]string{"ops firing 1 and 0 more", "ops resolved 1 and 0 more"}, w.sizes())
			dead = q.Dead()
		}
	}
}

// lateClock has the analysis of an end killed, and then, days later, the first clock after it.
func (w *fixture) lateClock(analyst, clock *crashtest.Process) {
	w.t.Helper()
	text := descriptor(atOnce(tooSlow))
	for _, rate := range []float64{120, 90, 120, 121} {
		w.deliver(nil, w.put(text, rate))
	}
	w.deliver(analyst, w.put(text, 122))
	w.now = w.now.Add(4 * day)
	w.strike(clock)
	w.mend()
	w.mend()
}

func TestAnEndIsNotifiedOfAlthoughTheFirstClockDaysAfterItsAnalystIsKilledToo(t *testing.T) {
	for effect, deaths := 1, 1; deaths > 0; effect++ {
		deaths = 0
		for p := range crashtest.Points() {
			w, q := newFixture(t), crashtest.New(effect, true)
			w.lateClock(p, q)
			if all := w.sizes(); slices.Contains(w.incidents(), "below rate resolved from r02") != (len(all) == 4) {
				t.Errorf("the analyst %s, the clock %s: incidents %q, notices %q", p, q, w.incidents(), all)
			}
			if q.Dead() {
				deaths++
			}
		}
	}
}

// sameRun has a bad run handled by a process that is overtaken, and lacks the good runs after it, and amid that by one that is killed.
func (w *fixture) sameRun(overtaken, killed *crashtest.Process) {
	w.t.Helper()
	text := descriptor(atOnce(tooSlow))
	w.deliver(nil, w.put(text, 120))
	bad := w.put(text, 90)
	var good []string
	for _, rate := range []float64{120, 121, 122} {
		good = append(good, w.put(text, rate).Run)
	}
	overtaken.OvertakeWith(func() { w.deliver(killed, bad) })
	d := w.deps(lateStore{overtaken.Store(w.store), good, func() bool { return true }})
	if err := w.handle(d, bad); err != nil && !errors.Is(err, store.ErrConflict) {
		w.t.Fatal(err)
	}
	w.deliver(nil, bad)
	w.mend()
	w.mend()
}

func TestAnEndIsNotifiedOfWhereverOneOfTwoAnalystsOfTheSameRunIsKilled(t *testing.T) {
	for effect, deaths := 1, 1; deaths > 0; effect++ {
		deaths = 0
		for p := range crashtest.Overtaken() {
			w, q := newFixture(t), crashtest.New(effect, true)
			w.sameRun(p, q)
			if all := w.sizes(); len(all)%4 != 0 {
				t.Errorf("the analyst that lacks the end %s by one that %s: incidents %q, notices %q", p, q, w.incidents(), all)
			}
			if q.Dead() {
				deaths++
			}
		}
	}
}

func TestAnAlarmThatIsRemovedAmidAnAnalysisLeavesNoOpenIncident(t *testing.T) {
	for p := range crashtest.Overtaken() {
		w := newFixture(t)
		w.deliver(nil, w.put(descriptor(atOnce(tooSlow)), 120))
		bad, removal := w.put(descriptor(atOnce(tooSlow)), 90), w.put(descriptor(fails), 91)
		p.OvertakeWith(func() { w.deliver(nil, removal) })
		d := w.deps(p.Store(w.store))
		if err := w.handle(d, bad); err != nil { // the other one has stored the rules of the task
			w.deliver(nil, bad)
		}
		w.deliver(nil, removal)
		w.mend()
		incidents, notices := strings.Join(w.incidents(), ", "), len(w.sizes())
		if incidents != "" && incidents != "below rate resolved from r02" || notices%4 != 0 { // both receivers hear of both, or of neither
			t.Errorf("the analyst %s by the removal: incidents %q, %d notices", p, incidents, notices)
		}
	}
}

func TestAnIncidentThatAnotherAnalysisIsAboutToStoreStaysInTheState(t *testing.T) {
	for p := range crashtest.Overtaken() {
		w := newFixture(t)
		good := w.put(descriptor(atOnce(tooSlow)), 120)
		w.deliver(nil, good)
		bad := w.put(descriptor(atOnce(tooSlow)), 90)
		hidden := func() bool { return len(w.incidents()) == 0 }
		p.OvertakeWith(func() {
			if err := w.handle(w.deps(lateStore{w.store, []string{bad.Run}, hidden}), good); err != nil {
				t.Fatal(err)
			}
		})
		w.deliver(p, bad)
		for key, s := range docs[struct{ Incidents []string }](w, store.KindRuleState) {
			if len(s.Incidents) != 1 {
				t.Errorf("the analyst %s: state %s has the incidents %q", p, key, s.Incidents)
			}
		}
	}
}

func TestAnOpenIncidentThatItsStateLacksEndsWithItsAlarm(t *testing.T) {
	w := newFixture(t).listen()
	w.slow()
	for key := range docs[any](w, store.KindRuleState) {
		if err := w.store.DeleteDoc(t.Context(), store.Doc{Kind: store.KindRuleState, Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	w.run(descriptor(fails), 90)
	want(t, "incidents after the run", []string{"below rate firing from r04"}, w.incidents())
	w.mend()
	want(t, "incidents a minute later", []string{"below rate resolved from r04"}, w.incidents())
}

func TestAnAnalysisThatIsKilledBeforeItsAlarmIsRemovedLeavesNoPendingState(t *testing.T) {
	for p := range crashtest.Points() {
		w := newFixture(t)
		w.deliver(nil, w.put(descriptor(atOnce(tooSlow)), 120))
		bad := w.put(descriptor(atOnce(tooSlow)), 90)
		w.deliver(p, bad)
		w.deliver(nil, w.put(descriptor(fails), 91))
		w.deliver(nil, bad)
		for key, s := range docs[struct{ Pending bool }](w, store.KindRuleState) {
			if s.Pending {
				t.Errorf("the analyst %s: state %s is pending", p, key)
			}
		}
	}
}

// staleRules is a store whose list of rules is that of an earlier time.
type staleRules struct {
	analyst.Store

	list []store.Doc
}

// Docs implements store.Lister.
func (s staleRules) Docs(ctx context.Context, kind store.Kind, after string, limit int) ([]store.Doc, error) {
	if kind != store.KindRuleSet {
		return s.Store.Docs(ctx, kind, after, limit)
	}
	if after != "" {
		return nil, nil
	}
	return s.list, nil
}

func TestAClockThatHasRulesOfAnEarlierTimeLeavesNoOpenIncident(t *testing.T) {
	w := newFixture(t)
	w.deliver(nil, w.put(descriptor(silence), 120))
	rules, err := w.store.Docs(t.Context(), store.KindRuleSet, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	w.deliver(nil, w.put(descriptor(fails), 120))
	w.now = begin.Add(9 * day)
	if err := analyst.Tick(t.Context(), w.deps(staleRules{w.store, rules})); err != nil {
		t.Fatal(err)
	}
	want(t, "incidents after the clock", []string{"missing rate firing from no run"}, w.incidents())
	w.mend()
	want(t, "incidents a minute later", []string{"missing rate resolved from no run"}, w.incidents())
	want(t, "notices", []string{"ops firing 1 and 0 more", "ops resolved 1 and 0 more"}, w.sizes())
}
