package summarise_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/metrics-pusher/summarise"
)

const gracePeriod = time.Hour

// fixture is a store, a bus, and the service, whose clock stands at now.
type fixture struct {
	store *sqlite.Store
	bus   *eventtest.Bus
	work  service.Runnable
	now   time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{store: storetest.Open(t), bus: eventtest.NewBus(t), now: time.Unix(1000, 0)}
	putEnded(t, w.store, "r", nil)
	w.start()
	return w
}

// putEnded stores a run of task train that took 9 s and succeeded, unless change changes it.
func putEnded(t *testing.T, s store.Runs, id string, change func(*store.Run)) {
	t.Helper()
	r, c := storetest.NewRun(id, time.Unix(1, 0).UTC())
	started, ended := time.Unix(3, 0).UTC(), time.Unix(12, 0).UTC()
	r.Phase, r.Outcome, r.Started, r.Ended = event.PhaseFinished, event.Succeeded, &started, &ended
	r.Labels = map[string]string{store.LabelTask: "train"}
	if change != nil {
		change(&r)
	}
	if err := s.PutRun(t.Context(), r, c); err != nil {
		t.Fatal(err)
	}
}

// start makes the service, as after a restart.
func (w *fixture) start() {
	d := summarise.Deps{Bus: w.bus, Store: w.store, Now: func() time.Time { return w.now }, Log: zap.NewNop()}
	w.work = summarise.New(summarise.Settings{GracePeriod: gracePeriod}, d)["metrics-pusher/summarise/work"]
}

// summaries returns the summaries of a run once the service has no more work for the run, and all conditions in and are true.
func (w *fixture) summaries(t *testing.T, and ...func() bool) store.Summaries {
	t.Helper()
	return w.until(t, append(and, func() bool {
		left, err := w.store.Docs(t.Context(), store.KindPendingSummary, "", 10)
		return err != nil || len(left) == 0
	})...)
}

// until returns the summaries of a run once all conditions are true.
func (w *fixture) until(t *testing.T, conditions ...func() bool) store.Summaries {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- w.work(ctx) }()
	for ctx.Err() == nil {
		if !slices.ContainsFunc(conditions, func(holds func() bool) bool { return !holds() }) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return w.read(t)
}

func (w *fixture) read(t *testing.T) store.Summaries {
	t.Helper()
	s, _, err := store.Get[store.Summaries](t.Context(), w.store, store.KindSummary, "r")
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return s
}

// appendSamples stores samples of an attempt, and the ends of all that its pod brings.
func (w *fixture) appendSamples(t *testing.T, attempt int, ended bool, samples ...event.Sample) {
	t.Helper()
	pod := fmt.Sprint("p", attempt)
	for _, stream := range []string{event.StreamMetrics, event.StreamOutput, event.StreamFIFO} {
		o := storetest.NewOrigin("r", pod)
		o.Kind, o.Attempt = stream, attempt
		b := store.Samples{Origin: o}
		if stream == event.StreamMetrics {
			b.Samples = samples
		}
		if ended {
			b.End = &event.End{Count: int64(len(b.Samples))}
		}
		errs := []error{w.store.AppendSamples(t.Context(), []store.Samples{b})}
		if ended && stream == event.StreamOutput {
			errs = append(errs, w.store.AppendLines(t.Context(), []store.Lines{{Origin: o, End: &event.End{Last: -1}}}))
		}
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
}

func finished(attempt int, pods ...string) event.Finished {
	h := event.NewHeader(fmt.Sprint("f", attempt), "r", "pets", "ann", time.Unix(1, 0).UTC())
	h.Attempt = attempt
	return event.Finished{Header: h, Outcome: event.Succeeded, Message: "done", Collectors: pods}
}

func at(seq int64, name string, value float64, time int64, labels ...string) event.Sample {
	s := storetest.NewSample(seq, name, value)
	s.Unit, s.Time, s.Labels = "ms", time, nil
	if len(labels) > 0 {
		s.Labels = map[string]string{"gpu": labels[0]}
	}
	return s
}

// text returns the summary of each series as text.
func text(all store.Summaries) string {
	var b strings.Builder
	fmt.Fprintf(&b, "attempt %d complete %t samples %d", all.Attempt, all.Complete, all.Samples)
	for _, s := range all.Summaries {
		fmt.Fprintf(&b, "; %s %s %v n %d nan %d median %v first %v last %v", s.Metric, s.Unit, s.Labels, s.N, s.NotNumbers, float64(s.Median), float64(s.First), float64(s.Last))
	}
	return b.String()
}

func TestTheSamplesOfARunThatIsOverAreSummarisedBySeries(t *testing.T) {
	w := newFixture(t)
	w.appendSamples(t, 1, true, at(1, "loss", 3, 30), at(2, "loss", 1, 10), at(3, "loss", 2, 20), at(4, "loss", math.NaN(), 40),
		at(5, "loss", 9, 1, "0"), at(6, "accuracy", 0.5, 1))
	w.bus.PublishAndWait(finished(1, "p1"))
	want := "attempt 1 complete true samples 6; accuracy ms map[] n 1 nan 0 median 0.5 first 0.5 last 0.5; " +
		"loss ms map[] n 3 nan 1 median 2 first 1 last 3; loss ms map[gpu:0] n 1 nan 0 median 9 first 9 last 9"
	if diff := cmp.Diff(want, text(w.summaries(t))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	before := w.read(t)
	w.bus.Replay()
	if left, err := w.store.Docs(t.Context(), store.KindPendingSummary, "", 10); err != nil || len(left) > 0 {
		t.Errorf("what was summarised is noted again: %v, %v", left, err)
	}
	if diff := cmp.Diff(text(before), text(w.read(t))); diff != "" {
		t.Errorf("a replay changed it (-want +got):\n%s", diff)
	}
}

func TestOnlyTheLastAttemptIsSummarised(t *testing.T) {
	w := newFixture(t)
	w.appendSamples(t, 1, true, at(1, "loss", 100, 1))
	w.appendSamples(t, 2, true, at(1, "loss", 5, 1))
	w.bus.PublishAndWait(finished(2, "p1", "p2"))
	want := "attempt 2 complete true samples 1; loss ms map[] n 1 nan 0 median 5 first 5 last 5"
	if diff := cmp.Diff(want, text(w.summaries(t))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARunIsSummarisedOnceAllOfItsSamplesAreThereWhoeverIsKilledBefore(t *testing.T) {
	w := newFixture(t)
	w.appendSamples(t, 1, false, at(1, "loss", 1, 1))
	w.bus.PublishAndWait(finished(1, "p1"))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := w.work(ctx); err != nil {
		t.Fatal(err)
	}
	if s := w.read(t); s.Run != "" {
		t.Fatalf("summarised before all samples are there: %s", text(s))
	}
	w.start() // the process loses its memory
	w.appendSamples(t, 1, true, at(1, "loss", 1, 1), at(2, "loss", 2, 2), at(3, "loss", 3, 3))
	want := "attempt 1 complete true samples 3; loss ms map[] n 3 nan 0 median 2 first 1 last 3"
	if diff := cmp.Diff(want, text(w.summaries(t))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// noted returns the summed count in the document of the run, and whether there is a document.
func (w *fixture) noted(t *testing.T) (summed *int64, noted bool) {
	t.Helper()
	d, _, err := store.Get[struct{ Summed *int64 }](t.Context(), w.store, store.KindPendingSummary, "r")
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return d.Summed, err == nil
}

func TestSamplesThatNeverComeAreNotWaitedForForEver(t *testing.T) {
	w := newFixture(t)
	w.appendSamples(t, 1, false, at(1, "loss", 1, 1))
	w.bus.PublishAndWait(finished(1, "p1"))
	w.now = w.now.Add(gracePeriod)
	want := "attempt 1 complete false samples 1; loss ms map[] n 1 nan 0 median 1 first 1 last 1"
	summed := func() bool { n, _ := w.noted(t); return n != nil }
	if diff := cmp.Diff(want, text(w.until(t, summed))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.start()
	w.now = w.now.Add(24 * time.Hour)
	if diff := cmp.Diff(want, text(w.summaries(t))); diff != "" {
		t.Errorf("a day later (-want +got):\n%s", diff)
	}
	w.bus.Replay()
	if _, again := w.noted(t); again {
		t.Error("noted again")
	}
}

func TestAsLongAsMoreSamplesComeNothingIsSummarised(t *testing.T) {
	w := newFixture(t)
	w.appendSamples(t, 1, false, at(0, "loss", 0, 0))
	w.bus.PublishAndWait(finished(1, "p1"))
	for n := range int64(4) { // each within the grace period of the last, all of them together not
		w.now = w.now.Add(gracePeriod * 9 / 10)
		w.appendSamples(t, 1, false, at(n+1, "loss", float64(n+1), n+1))
		w.start()
		w.until(t, func() bool {
			d, _, err := store.Get[struct{ There struct{ Samples int64 } }](t.Context(), w.store, store.KindPendingSummary, "r")
			return err == nil && d.There.Samples == n+2
		})
		if s := w.read(t); s.Run != "" {
			t.Fatalf("summarised: %s", text(s))
		}
	}
	w.appendSamples(t, 1, true, at(0, "loss", 0, 0), at(1, "loss", 1, 1), at(2, "loss", 2, 2), at(3, "loss", 3, 3), at(4, "loss", 4, 4))
	w.start()
	want := "attempt 1 complete true samples 5; loss ms map[] n 5 nan 0 median 2 first 0 last 4"
	if diff := cmp.Diff(want, text(w.summaries(t))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsSummarisedInPartIsReplacedOnceAllIsThere(t *testing.T) {
	w := newFixture(t)
	w.appendSamples(t, 1, false, at(1, "loss", 1, 1))
	w.bus.PublishAndWait(finished(1, "p1"))
	w.now = w.now.Add(gracePeriod)
	w.until(t, func() bool { n, _ := w.noted(t); return n != nil })
	w.appendSamples(t, 1, true, at(1, "loss", 1, 1), at(2, "loss", 2, 2), at(3, "loss", 3, 3))
	w.start()
	w.now = w.now.Add(20 * time.Hour)
	want := "attempt 1 complete true samples 3; loss ms map[] n 3 nan 0 median 2 first 1 last 3"
	if diff := cmp.Diff(want, text(w.summaries(t))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.bus.Replay()
	if _, again := w.noted(t); again {
		t.Error("noted again")
	}
}

// laggingStore is a store whose samples lag behind its counts, while lagging is set.
type laggingStore struct {
	*sqlite.Store

	lags atomic.Bool
	read atomic.Int64 // times
}

func (l *laggingStore) Samples(ctx context.Context, q store.SampleQuery, cursor string, limit int) ([]store.Sample, string, error) {
	samples, next, err := l.Store.Samples(ctx, q, cursor, limit)
	if l.read.Add(1); l.lags.Load() && len(samples) > 1 {
		samples = samples[:1]
	}
	return samples, next, err
}

func TestASummaryIsCompleteOnlyWhereAllSamplesThatAreCountedAreRead(t *testing.T) {
	w := newFixture(t)
	late := &laggingStore{Store: w.store}
	late.lags.Store(true)
	begin := func() {
		d := summarise.Deps{Bus: w.bus, Store: late, Now: func() time.Time { return w.now }, Log: zap.NewNop()}
		w.work = summarise.New(summarise.Settings{GracePeriod: gracePeriod}, d)["metrics-pusher/summarise/work"]
	}
	begin()
	w.appendSamples(t, 1, true, at(1, "loss", 1, 1), at(2, "loss", 2, 2), at(3, "loss", 3, 3))
	w.bus.PublishAndWait(finished(1, "p1"))
	if s := w.until(t, func() bool { return late.read.Load() >= 3 }); s.Run != "" {
		t.Fatalf("summarised while the store lags: %s", text(s))
	}
	w.now = w.now.Add(gracePeriod)
	begin()
	want := "attempt 1 complete false samples 1; loss ms map[] n 1 nan 0 median 1 first 1 last 1"
	if diff := cmp.Diff(want, text(w.until(t, func() bool { n, _ := w.noted(t); return n != nil && *n == 1 }))); diff != "" {
		t.Errorf("after long (-want +got):\n%s", diff)
	}
	late.lags.Store(false)
	begin()
	want = "attempt 1 complete true samples 3; loss ms map[] n 3 nan 0 median 2 first 1 last 3"
	if diff := cmp.Diff(want, text(w.summaries(t))); diff != "" {
		t.Errorf("once it has caught up (-want +got):\n%s", diff)
	}
}

// countingStore is a store that counts the calls for the streams of a run.
type countingStore struct {
	*sqlite.Store

	mu    sync.Mutex
	calls map[string]int // by run
}

func (c *countingStore) Streams(ctx context.Context, run string) ([]store.Stream, error) {
	c.mu.Lock()
	c.calls[run]++
	c.mu.Unlock()
	return c.Store.Streams(ctx, run)
}

// callsFor returns the number of calls for a run, and for all runs.
func (c *countingStore) callsFor(run string) (n, all int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.calls {
		all += n
	}
	return c.calls[run], all
}

func TestManyRunsWhoseDataAreLateCostEachWhatOneDoes(t *testing.T) {
	bus, counted := eventtest.NewBus(t), &countingStore{Store: storetest.Open(t), calls: map[string]int{}}
	d := summarise.Deps{Bus: bus, Store: counted, Now: func() time.Time { return time.Unix(1000, 0) }, Log: zap.NewNop()}
	work := summarise.New(summarise.Settings{GracePeriod: gracePeriod}, d)["metrics-pusher/summarise/work"]
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	const runs = 300
	for i := range runs {
		run := fmt.Sprint("r", i)
		putEnded(t, counted, run, nil)
		bus.PublishAndWait(event.Finished{Header: event.NewHeader("f-"+run, run, "pets", "ann", time.Unix(1, 0).UTC()), Outcome: event.Succeeded, Message: "done", Collectors: []string{"p"}})
		noted, _ := counted.callsFor(run)
		for n := noted; n == noted && ctx.Err() == nil; n, _ = counted.callsFor(run) { // until the service checks the run again
			time.Sleep(100 * time.Microsecond)
		}
	}
	if _, all := counted.callsFor(""); all > 20*runs { // pauses that double come to an hour after 18
		t.Errorf("the store was asked %d times for %d runs", all, runs)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// flakyStore is a store whose first reads of samples fail.
type flakyStore struct {
	*sqlite.Store

	failures atomic.Int64
}

func (s *flakyStore) Samples(ctx context.Context, q store.SampleQuery, cursor string, limit int) ([]store.Sample, string, error) {
	if s.failures.Add(-1) >= 0 {
		return nil, "", errors.New("away")
	}
	return s.Store.Samples(ctx, q, cursor, limit)
}

func TestARunIsSummarisedOnceTheStoreIsBackAndThatItWasAwayIsSaidOnce(t *testing.T) {
	w := newFixture(t)
	core, logs := observer.New(zap.InfoLevel)
	away := &flakyStore{Store: w.store}
	away.failures.Store(2)
	d := summarise.Deps{Bus: w.bus, Store: away, Now: func() time.Time { return w.now }, Log: zap.New(core)}
	w.work = summarise.New(summarise.Settings{GracePeriod: gracePeriod}, d)["metrics-pusher/summarise/work"]
	w.appendSamples(t, 1, true, at(1, "loss", 3, 30))
	w.bus.PublishAndWait(finished(1, "p1"))
	again := func() bool { return logs.FilterMessage("works again").Len() > 0 }
	if s := w.summaries(t, again); !s.Complete || s.Samples != 1 {
		t.Errorf("summaries: %+v", s)
	}
	for _, message := range []string{"failed, retrying", "works again"} {
		if n := logs.FilterMessage(message).Len(); n != 1 {
			t.Errorf("%q is said %d times, want once: %v", message, n, logs.All())
		}
	}
}

func TestSettings(t *testing.T) {
	if err := (summarise.Settings{GracePeriod: -1, AllowedLateness: -1, PollInterval: -1}).Validate(); err == nil || !strings.Contains(err.Error(), "patience") || !strings.Contains(err.Error(), "late") || !strings.Contains(err.Error(), "look") {
		t.Error(err)
	}
	if err := (summarise.Settings{}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestARunIsPassedOnOnceItHasItsLastSummaries(t *testing.T) {
	w := newFixture(t)
	var passed []string
	fails := errors.New("the store is away")
	d := summarise.Deps{
		Bus: w.bus, Store: w.store, Now: func() time.Time { return w.now }, Log: zap.NewNop(),
		Summarised: func(_ context.Context, r store.Run) error {
			passed = append(passed, r.ID)
			if len(passed) == 1 {
				return fails
			}
			return nil
		},
	}
	parts := summarise.New(summarise.Settings{GracePeriod: gracePeriod}, d)
	w.work = parts["metrics-pusher/summarise/work"]
	w.appendSamples(t, 1, true, at(1, "loss", 3, 30))
	w.bus.PublishAndWait(finished(1, "p1"))
	if all := w.summaries(t); !all.Complete {
		t.Errorf("%s", text(all))
	}
	if diff := cmp.Diff([]string{"r", "r"}, passed); diff != "" {
		t.Errorf("a failure, and a success (-want +got):\n%s", diff)
	}
}
