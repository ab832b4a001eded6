package analyst_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/benchmark-ai/bai/services/analyst"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
	"github.com/benchmark-ai/bai/services/gateway/analysis"
	"github.com/benchmark-ai/bai/services/gateway/schedule"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func want(t *testing.T, what string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// slow runs the task until its rate was over the limit twice: the alarm has fired.
func (w *fixture) slow() {
	w.t.Helper()
	for _, rate := range []float64{120, 121, 122, 90, 91} {
		w.run(descriptor(tooSlow), rate)
	}
}

func TestAnIncidentIsOpenedOnceAndEachReceiverIsNotifiedOnce(t *testing.T) {
	w := newFixture(t).listen()
	w.slow()
	want(t, "incidents", []string{"below rate firing from r04"}, w.incidents())
	want(t, "deliveries", []string{"ops firing waiting", "perf firing waiting"}, w.deliveries())
	w.run(descriptor(tooSlow), 92)
	want(t, "deliveries after another run like it", []string{"ops firing waiting", "perf firing waiting"}, w.deliveries())
	before := w.contents()
	w.bus.Replay()
	if diff := cmp.Diff(before, w.contents()); diff != "" {
		t.Errorf("after a replay (-before +after):\n%s", diff)
	}
}

func TestAReceiverHearsLaterOfATaskWhoseVersionsHaveTheSameNames(t *testing.T) {
	w := newFixture(t).listen()
	var others []event.Event
	for _, day := range []struct {
		version string
		value   float64
	}{{"1", 120}, {"1", 120}, {"2", 90}, {"2", 90}} {
		of := func(task string) func(*store.Run) {
			return func(r *store.Run) { r.Labels = map[string]string{store.LabelTask: task, "version": day.version} }
		}
		w.run(descriptor(tooSlow), day.value, of("rates"))
		at := w.now
		others = append(others, w.put(strings.Replace(descriptor(tooSlow), `"rates"`, `"others"`, 1), day.value, of("others")))
		w.now = at
	}
	once := []string{"ops firing waiting", "perf firing waiting"}
	want(t, "deliveries", once, w.deliveries())
	for _, ev := range others {
		w.bus.PublishAndWait(ev)
	}
	want(t, "deliveries after the other task fires", once, w.deliveries())
	w.tick()
	want(t, "deliveries within the hour", once, w.deliveries())
	w.now = w.now.Add(time.Hour)
	w.tick()
	w.tick()
	want(t, "deliveries after it", []string{"ops firing waiting", "ops firing waiting", "perf firing waiting", "perf firing waiting"}, w.deliveries())
}

func TestAnIncidentThatIsOverIsNotifiedOfOnce(t *testing.T) {
	w := newFixture(t).listen()
	w.slow()
	for range 4 {
		w.run(descriptor(tooSlow), 120)
	}
	want(t, "incidents", []string{"below rate resolved from r04"}, w.incidents())
	want(t, "deliveries", []string{"ops firing waiting", "ops resolved waiting", "perf firing waiting", "perf resolved waiting"}, w.deliveries())
}

func TestARunOfATaskWithoutAlarmsWritesNothing(t *testing.T) {
	w := newFixture(t).listen()
	w.run(descriptor(), 100)
	w.run(descriptor(tooSlow), 100, func(r *store.Run) { r.Labels = nil })
	if got := w.contents(); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

func TestARuleThatIsGoneEndsItsIncidents(t *testing.T) {
	w := newFixture(t).listen()
	w.slow()
	w.run(descriptor(fails), 90)
	want(t, "incidents", []string{"below rate resolved from r04"}, w.incidents())
	for key, s := range docs[incident.RuleSet](w, store.KindRuleSet) {
		if key != "pets/rates" || len(s.Rules) != 1 || s.Rules[0].When != incident.Failed {
			t.Errorf("%s: %+v", key, s)
		}
	}
}

func TestConfirmationsAndImportsAndOlderRunsChangeNoRules(t *testing.T) {
	w := newFixture(t).listen()
	w.run(descriptor(tooSlow), 120)
	w.run(descriptor(), 120, func(r *store.Run) { r.Confirms = "an incident" })
	w.run(descriptor(), 120, func(r *store.Run) { r.Compares = "a comparison" })
	w.run(descriptor(), 120, func(r *store.Run) { r.Created = begin.Add(-time.Hour) })
	for key, s := range docs[incident.RuleSet](w, store.KindRuleSet) {
		if len(s.Rules) != 1 || !s.Newest.Equal(begin) {
			t.Errorf("%s: %+v", key, s)
		}
	}
}

func TestAFailureIsFoundFromTheEndOfARunAlone(t *testing.T) {
	w := newFixture(t).listen()
	w.run(descriptor(fails), 120)
	ev := w.put(descriptor(fails), 0, func(r *store.Run) { r.Phase, r.Outcome, r.Ended = event.PhaseRunning, "", nil })
	h := ev.Header
	h.ID = "f-" + h.Run
	w.bus.PublishAndWait(event.Finished{Header: h, Outcome: event.Failed, Class: event.ClassUser, Reason: event.NonZeroExit, Message: "exit code 1"})
	want(t, "incidents", []string{"failed  firing from r02"}, w.incidents())
	w.end(h.Run)
	w.run(descriptor(fails), 120)
	w.run(descriptor(fails), 120)
	w.run(descriptor(fails), 120)
	want(t, "incidents after runs that succeed", []string{"failed  resolved from r02"}, w.incidents())
}

// end stores that a run has failed: the record of its end comes later than the event.
func (w *fixture) end(id string) {
	w.t.Helper()
	r, err := w.store.Run(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	failed(&r)
	r.Phase, r.Revision = event.PhaseFinished, r.Revision+1
	c := store.Change{Run: id, Revision: r.Revision, Event: id + "-end", Topic: event.TopicFinished, Time: w.now, Attempt: 1, Phase: r.Phase, Outcome: r.Outcome}
	if err := w.store.PutRun(w.t.Context(), r, c); err != nil {
		w.t.Fatal(err)
	}
}

func TestAValueThatDoesNotComeIsMissedOnceAndItsIncidentEndsWithTheNext(t *testing.T) {
	w := newFixture(t).listen()
	w.run(descriptor(silence), 120)
	w.now = begin.Add(25 * time.Hour)
	w.tick()
	want(t, "in time", nil, w.incidents())
	w.now = begin.Add(27 * time.Hour)
	w.tick()
	w.now = begin.Add(270 * time.Hour)
	w.tick()
	if got := w.incidents(); len(got) != 1 || !strings.HasPrefix(got[0], "missing rate firing") {
		t.Errorf("late: %q", got)
	}
	w.runs = 12
	w.run(descriptor(silence), 120)
	if got := w.incidents(); len(got) != 1 || !strings.HasPrefix(got[0], "missing rate resolved") {
		t.Errorf("once there is a value: %q", got)
	}
}

// schedule stores a schedule that fires every day at 2.
func (w *fixture) schedule(paused bool) {
	w.t.Helper()
	s := schedule.Schedule{ID: "nightly", Paused: paused, From: begin.Add(-time.Hour), Updated: begin.Add(-time.Hour), Rules: schedule.Rules{Cron: "0 2 * * *", Zone: "UTC"}}
	if err := store.Create(w.t.Context(), w.store, store.KindSchedule, "nightly", s); err != nil {
		w.t.Fatal(err)
	}
}

// fired makes a run one of the schedule.
func fired(r *store.Run) {
	at := r.Created
	r.Schedule, r.Firing = "nightly", &at
}

func TestANightWithoutAValueIsMissedByTheSchedule(t *testing.T) {
	for name, tt := range map[string]struct {
		paused bool
		night  func(w *fixture)
		want   int
	}{
		"the platform was away": {night: func(w *fixture) {
			w.now = begin.Add(25 * time.Hour)
			w.tick()
		}, want: 1},
		"it is not late yet": {night: func(w *fixture) {
			w.now = begin.Add(24*time.Hour + 10*time.Minute)
			w.tick()
		}},
		"the run failed":                    {night: func(w *fixture) { w.run(descriptor(nightly), 0, fired, failed) }, want: 1},
		"the run succeeded without a value": {night: func(w *fixture) { w.run(descriptor(nightly), -1, fired) }, want: 1},
		"another run failed":                {night: func(w *fixture) { w.run(descriptor(nightly), 0, failed) }},
		"the schedule is paused, and the alarm has a time": {paused: true, night: func(w *fixture) {
			w.run(descriptor(silence), 120, fired)
			w.now = begin.Add(99 * time.Hour)
			w.tick()
		}},
		"the schedule is paused": {paused: true, night: func(w *fixture) {
			w.now = begin.Add(99 * time.Hour)
			w.tick()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t).listen()
			w.schedule(tt.paused)
			w.run(descriptor(nightly), 120, fired)
			tt.night(w)
			if got := w.incidents(); len(got) != tt.want {
				t.Errorf("%q, want %d", got, tt.want)
			}
		})
	}
}

func TestValuesAreComparedWithThoseOfTheBaselineAsItIsNow(t *testing.T) {
	w := newFixture(t).listen()
	const beyond = "[[alarms]]\nmetric = \"rate\"\nbeyond = \"5%\"\nbaseline = \"main\"\nnotify = [\"perf\"]\n"
	for _, rate := range []float64{120, 121, 119, 100, 101} {
		w.run(descriptor(beyond), rate)
	}
	want(t, "incidents without a baseline", nil, w.incidents())
	b := analysis.Baseline{Name: "main", Namespace: "pets", Revisions: []analysis.BaselineRevision{{Number: 2, Runs: []string{"r01", "r02", "r03"}}, {Number: 1, Runs: []string{"r04"}}}}
	if err := store.Create(t.Context(), w.store, store.KindBaseline, "pets/main", b); err != nil {
		t.Fatal(err)
	}
	w.run(descriptor(beyond), 100)
	want(t, "incidents", []string{"beyond rate firing from r04"}, w.incidents())
}

func TestWhatAUserSaysOfAnIncidentIsApplied(t *testing.T) {
	w := newFixture(t).listen()
	w.slow()
	w.ack(incident.Ack{Reason: "a known regression", Until: w.now.Add(time.Hour)})
	w.tick()
	want(t, "acknowledged", []string{"below rate acknowledged from r04"}, w.incidents())
	before := w.contents()
	w.tick()
	if diff := cmp.Diff(before, w.contents()); diff != "" {
		t.Errorf("another tick (-before +after):\n%s", diff)
	}
	w.now = w.now.Add(2 * time.Hour)
	w.tick()
	want(t, "after its time", []string{"below rate firing from r04"}, w.incidents())
}

// deliver passes an event to a new analyst, in a process that may be killed; nil is one that is not.
func (w *fixture) deliver(p *crashtest.Process, ev event.Summarised) {
	w.t.Helper()
	d := w.deps(w.store)
	if p != nil {
		d.Store = p.Store(w.store)
	}
	if err := w.handle(d, ev); err != nil && (p == nil || !p.Dead()) {
		w.t.Fatal(err)
	}
}

// handle passes an event to a new analyst.
func (w *fixture) handle(d analyst.Deps, ev event.Summarised) error {
	w.t.Helper()
	steps := &stepRecorder{}
	d.Bus = steps
	analyst.New(analyst.Settings{}, d)
	return handle(w.t.Context(), steps.of[event.TopicSummarised], ev)
}

// stepRecorder is a bus that only notes the steps.
type stepRecorder struct {
	of map[string]func(ctx context.Context, ms []event.Message) ([]event.Event, error)
}

func (b *stepRecorder) Consume(_ string, step service.Step) service.Runnable {
	if b.of == nil {
		b.of = make(map[string]func(ctx context.Context, ms []event.Message) ([]event.Event, error))
	}
	b.of[step.Topic] = step.Handle
	return nil
}

// play runs a task that becomes slow, then well again, then slow again, that fails once, and whose alarms change. A process that may be
// killed handles each run; if it is killed, another handles the same run again, and the next ones.
func (w *fixture) play(p *crashtest.Process) {
	w.t.Helper()
	step := func(ev event.Summarised) {
		if p == nil || p.Dead() {
			w.deliver(nil, ev)
			return
		}
		if w.deliver(p, ev); p.Dead() {
			w.deliver(nil, ev)
		}
	}
	for _, rate := range []float64{120, 121, 122, 90, 91, 120, 121, 122, 123, 92, 93} {
		step(w.put(descriptor(tooSlow, fails), rate))
	}
	step(w.put(descriptor(tooSlow, fails), 0, failed))
	step(w.put(descriptor(fails), 120))
}

func TestAProcessThatIsKilledAtAnyEffectLeavesWhatIsMended(t *testing.T) {
	calm := newFixture(t)
	calm.play(nil)
	if n := len(calm.deliveries()); n < 6 {
		t.Fatalf("%d deliveries: %q", n, calm.deliveries())
	}
	for p := range crashtest.Points() {
		w := newFixture(t)
		w.play(p)
		if diff := cmp.Diff(calm.contents(), w.contents()); diff != "" {
			t.Fatalf("%s (-calm +killed):\n%s", p, diff)
		}
	}
}

// expire lets the clock strike when the time of an acknowledgement is over, first in a process that may be killed, nil for none.
func (w *fixture) expire(p *crashtest.Process) {
	w.t.Helper()
	for _, rate := range []float64{120, 121, 122, 90, 91} {
		w.deliver(nil, w.put(descriptor(tooSlow), rate))
	}
	w.ack(incident.Ack{Reason: "a known regression", Until: w.now.Add(time.Hour)})
	w.tick()
	w.now = w.now.Add(2 * time.Hour)
	if p != nil {
		if err := analyst.Tick(w.t.Context(), w.deps(p.Store(w.store))); err != nil && !p.Dead() {
			w.t.Fatal(err)
		}
		if err := w.store.DeleteDoc(w.t.Context(), store.Doc{Kind: store.KindLease, Key: "analyst/clock"}); err != nil { // as if it had ended
			w.t.Fatal(err)
		}
	}
	w.tick()
	w.mend()
}

func TestAClockThatIsKilledAtAnyEffectLeavesWhatIsMended(t *testing.T) {
	calm := newFixture(t)
	calm.expire(nil)
	want(t, "deliveries", []string{"ops firing waiting", "ops firing waiting", "perf firing waiting", "perf firing waiting"}, calm.deliveries())
	for p := range crashtest.Points() {
		w := newFixture(t)
		w.expire(p)
		if diff := cmp.Diff(calm.undated(), w.undated()); diff != "" {
			t.Fatalf("%s (-calm +killed):\n%s", p, diff)
		}
	}
}

func TestTwoAnalystsAtOnceOpenNoIncidentTwice(t *testing.T) {
	calm := newFixture(t).listen()
	calm.slow()
	w := newFixture(t)
	for _, rate := range []float64{120, 121, 122, 90} {
		w.deliver(nil, w.put(descriptor(tooSlow), rate))
	}
	last := w.put(descriptor(tooSlow), 91)
	var all sync.WaitGroup
	for range 8 {
		steps := &stepRecorder{}
		d := w.deps(w.store)
		d.Bus = steps
		analyst.New(analyst.Settings{}, d)
		all.Go(func() {
			var err error
			for range 10 {
				if err = handle(t.Context(), steps.of[event.TopicSummarised], last); err == nil {
					return
				}
			}
			t.Error(err)
		})
	}
	all.Wait()
	want(t, "incidents", calm.incidents(), w.incidents())
	want(t, "deliveries", calm.deliveries(), w.deliveries())
}

// blindStore is a store whose points are not visible yet.
type blindStore struct{ analyst.Store }

func (blindStore) RunPoints(context.Context, []string, []string) ([]store.RunPoints, error) {
	return nil, nil
}

func TestPointsThatAreNotVisibleYetAreWaitedForButNotForEver(t *testing.T) {
	w := newFixture(t)
	steps := &stepRecorder{}
	d := w.deps(blindStore{w.store})
	d.Bus = steps
	analyst.New(analyst.Settings{}, d)
	m, err := event.Encode(w.put(descriptor(tooSlow), 90))
	if err != nil {
		t.Fatal(err)
	}
	m.PublishedAt = w.now
	for age, fails := range map[time.Duration]bool{0: true, 59 * time.Second: true, time.Minute: false} {
		w.now = m.PublishedAt.Add(age)
		if _, err := steps.of[event.TopicSummarised](t.Context(), []event.Message{m}); (err != nil) != fails {
			t.Errorf("after %s: %v", age, err)
		}
	}
}

// countingStore is a store that counts its calls.
type countingStore struct {
	analyst.Store

	calls map[string]int
}

func (c *countingStore) Points(ctx context.Context, q store.PointQuery, limit int) ([]store.Point, error) {
	c.calls["points"]++
	return c.Store.Points(ctx, q, limit)
}

func (c *countingStore) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	c.calls["doc"]++
	return c.Store.Doc(ctx, kind, key)
}

func (c *countingStore) Docs(ctx context.Context, kind store.Kind, after string, limit int) ([]store.Doc, error) {
	c.calls["docs"]++
	return c.Store.Docs(ctx, kind, after, limit)
}

func (c *countingStore) Series(ctx context.Context, q store.SeriesQuery, cursor string, limit int) ([]store.Series, string, error) {
	c.calls["series"]++
	return c.Store.Series(ctx, q, cursor, limit)
}

func (c *countingStore) Runs(ctx context.Context, f store.RunFilter, token string, limit int) ([]store.Run, string, error) {
	c.calls["runs"]++
	return c.Store.Runs(ctx, f, token, limit)
}

func TestARunCostsTheSameHoweverLongTheHistoryIs(t *testing.T) {
	w := newFixture(t)
	counted := &countingStore{w.store, make(map[string]int)}
	steps := &stepRecorder{}
	d := w.deps(counted)
	d.Bus = steps
	analyst.New(analyst.Settings{}, d)
	var costs []map[string]int
	for i := range 150 {
		ev := w.put(descriptor(tooSlow, fails), 120+float64(i%3))
		clear(counted.calls)
		if err := handle(t.Context(), steps.of[event.TopicSummarised], ev); err != nil {
			t.Fatal(err)
		}
		if i == 20 || i == 149 {
			costs = append(costs, maps.Clone(counted.calls))
		}
	}
	if diff := cmp.Diff(costs[0], costs[1]); diff != "" || costs[0]["points"] != 1 {
		t.Errorf("with 20 and with 150 points (-20 +150):\n%s", diff)
	}
}

func TestAFaultInOneSeriesStopsNoOtherAndIsLoggedOnceAndKept(t *testing.T) {
	w := newFixture(t)
	core, logs := observer.New(zap.ErrorLevel)
	d := w.deps(w.store)
	d.Log = zap.New(core)
	step := analyst.Summarised(d, func(in rule.Input) rule.Output {
		if in.Rule.When == incident.Below {
			var none []int
			_ = none[1]
		}
		return rule.Output{Notes: []string{"looked at " + string(in.Rule.When)}}
	})
	for range 3 {
		if _, err := step(t.Context(), w.put(descriptor(tooSlow, fails), 120)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, s := range docs[struct{ Fault, Notes any }](w, store.KindRuleState) {
		got = append(got, fmt.Sprintf("%v %v", s.Fault, s.Notes))
	}
	slices.Sort(got)
	want(t, "states", []string{"<nil> [looked at failed]", "runtime error: index out of range [1] with length 0 <nil>"}, got)
	if n := logs.FilterMessage("a series cannot be analysed").Len(); n != 1 {
		t.Errorf("the fault is logged %d times: %v", n, logs.All())
	}
}

func TestAnAnalystWithAShareOfTheTimePausesBeforeItsNextSeriesAndNotAfterItsLast(t *testing.T) {
	w := newFixture(t)
	synctest.Test(t, func(t *testing.T) {
		d := w.deps(w.store)
		d.Share = 0.25
		var began []string
		begin := time.Now()
		step := analyst.Summarised(d, func(rule.Input) rule.Output {
			began = append(began, time.Since(begin).String())
			time.Sleep(4 * time.Millisecond)
			return rule.Output{}
		})
		for i := range 2 {
			if _, err := step(t.Context(), w.put(descriptor(tooSlow, fails), 120)); err != nil {
				t.Fatal(err)
			}
			if took, bar := time.Since(begin), time.Duration(20+32*i)*time.Millisecond; took != bar {
				t.Errorf("event %d is handled after %s, want %s", i, took, bar)
			}
		}
		want(t, "analyses", []string{"0s", "16ms", "32ms", "48ms"}, began)
	})
}

func TestSettings(t *testing.T) {
	err := (analyst.Settings{Interval: -1, Lease: -1}).Validate()
	if err == nil || !strings.Contains(err.Error(), "analyst.interval") || !strings.Contains(err.Error(), "analyst.lease") {
		t.Error(err)
	}
	if err := (analyst.Settings{}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestTheReceiversOfARuleThatNamesNoneAreThoseOfTheNamespace(t *testing.T) {
	w := newFixture(t)
	d := w.deps(w.store)
	d.Receivers = func(namespace, _ string, names []string) []string {
		if len(names) == 0 {
			return []string{"team-" + namespace}
		}
		return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "perf" })
	}
	analyst.New(analyst.Settings{}, d)
	w.slow()
	want(t, "deliveries", []string{"ops firing waiting"}, w.deliveries())
}

// readCounter counts what is read of documents.
type readCounter struct {
	analyst.Store

	reads int
}

// Doc implements store.Getter.
func (c *readCounter) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	c.reads++
	return c.Store.Doc(ctx, kind, key)
}

func TestIncidentsThatEndedLongAgoCostTheClockNothing(t *testing.T) {
	w := newFixture(t).listen()
	tick := func() int {
		t.Helper()
		c := &readCounter{Store: w.store}
		if err := analyst.Tick(t.Context(), w.deps(c)); err != nil {
			t.Fatal(err)
		}
		return c.reads
	}
	w.run(descriptor(tooSlow), 120)
	before := tick()
	for range 3 {
		w.slow()
		w.ack(incident.Ack{Reason: "a known regression"})
		for range 4 {
			w.run(descriptor(tooSlow), 120)
		}
	}
	if open := tick(); open <= before {
		t.Errorf("%d reads with incidents, %d without", open, before)
	}
	w.now = w.now.Add(30 * 24 * time.Hour)
	tick()
	if got := tick(); got != before {
		t.Errorf("%d reads after a month, %d before any incident", got, before)
	}
}

// fakeMeter is a meter that keeps what it was given last.
type fakeMeter struct{ states map[string]int }

// RecordIncidents implements analyst.Meter.
func (m *fakeMeter) RecordIncidents(states map[string]int) { m.states = states }

func TestIncidentsAreCountedByState(t *testing.T) {
	w, m := newFixture(t).listen(), &fakeMeter{}
	w.slow()
	w.run(descriptor(tooSlow, fails), 0, failed)
	d := w.deps(w.store)
	d.Meter = m
	if err := analyst.Tick(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"firing": 2}, m.states); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
