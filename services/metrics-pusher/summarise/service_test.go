package summarise_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/metrics-pusher/summarise"
)

const patience = time.Hour

// world is a store, a bus, and the service, whose clock stands at now.
type world struct {
	store *sqlite.Store
	bus   *eventtest.Bus
	work  service.Part
	now   time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{store: storetest.Open(t), bus: eventtest.NewBus(t), now: time.Unix(1000, 0)}
	w.start()
	return w
}

// start makes the service, as after a restart.
func (w *world) start() {
	d := summarise.Deps{Bus: w.bus, Store: w.store, Now: func() time.Time { return w.now }, Log: zap.NewNop()}
	w.work = summarise.New(summarise.Settings{Patience: patience}, d)["metrics-pusher/summarise/work"]
}

// summaries returns what the service computes of a run, once it has.
func (w *world) summaries(t *testing.T) store.Summaries {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- w.work(ctx) }()
	for ctx.Err() == nil {
		if left, err := w.store.Docs(t.Context(), store.KindUnsummed, "", 10); err != nil || len(left) == 0 {
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

func (w *world) read(t *testing.T) store.Summaries {
	t.Helper()
	s, _, err := store.Get[store.Summaries](t.Context(), w.store, store.KindSummary, "r")
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return s
}

// bring stores samples of an attempt, and the ends of all that its pod brings.
func (w *world) bring(t *testing.T, attempt int, ended bool, samples ...event.Sample) {
	t.Helper()
	pod := fmt.Sprint("p", attempt)
	for _, stream := range []string{event.StreamMetrics, event.StreamOutput, event.StreamFIFO} {
		o := storetest.NewOrigin("r", pod)
		o.Stream, o.Attempt = stream, attempt
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

// text returns what is told of each series.
func text(all store.Summaries) string {
	var b strings.Builder
	fmt.Fprintf(&b, "attempt %d complete %t samples %d", all.Attempt, all.Complete, all.Samples)
	for _, s := range all.Summaries {
		fmt.Fprintf(&b, "; %s %s %v n %d nan %d median %v first %v last %v", s.Metric, s.Unit, s.Labels, s.N, s.NotNumbers, float64(s.Median), float64(s.First), float64(s.Last))
	}
	return b.String()
}

func TestTheSamplesOfARunThatIsOverAreSummarisedBySeries(t *testing.T) {
	w := newWorld(t)
	w.bring(t, 1, true, at(1, "loss", 3, 30), at(2, "loss", 1, 10), at(3, "loss", 2, 20), at(4, "loss", math.NaN(), 40),
		at(5, "loss", 9, 1, "0"), at(6, "accuracy", 0.5, 1))
	w.bus.Say(finished(1, "p1"))
	want := "attempt 1 complete true samples 6; accuracy ms map[] n 1 nan 0 median 0.5 first 0.5 last 0.5; " +
		"loss ms map[] n 3 nan 1 median 2 first 1 last 3; loss ms map[gpu:0] n 1 nan 0 median 9 first 9 last 9"
	if diff := cmp.Diff(want, text(w.summaries(t))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	before := w.read(t)
	w.bus.Replay()
	if left, err := w.store.Docs(t.Context(), store.KindUnsummed, "", 10); err != nil || len(left) > 0 {
		t.Errorf("what was summarised is noted again: %v, %v", left, err)
	}
	if diff := cmp.Diff(text(before), text(w.read(t))); diff != "" {
		t.Errorf("a replay changed it (-want +got):\n%s", diff)
	}
}

func TestOnlyTheLastAttemptIsSummarised(t *testing.T) {
	w := newWorld(t)
	w.bring(t, 1, true, at(1, "loss", 100, 1))
	w.bring(t, 2, true, at(1, "loss", 5, 1))
	w.bus.Say(finished(2, "p1", "p2"))
	want := "attempt 2 complete true samples 1; loss ms map[] n 1 nan 0 median 5 first 5 last 5"
	if diff := cmp.Diff(want, text(w.summaries(t))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARunIsSummarisedOnceAllOfItsSamplesAreThereWhoeverIsKilledBefore(t *testing.T) {
	w := newWorld(t)
	w.bring(t, 1, false, at(1, "loss", 1, 1))
	w.bus.Say(finished(1, "p1"))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := w.work(ctx); err != nil {
		t.Fatal(err)
	}
	if s := w.read(t); s.Run != "" {
		t.Fatalf("summarised before all samples are there: %s", text(s))
	}
	w.start() // what the process knew is gone
	w.bring(t, 1, true, at(1, "loss", 1, 1), at(2, "loss", 2, 2), at(3, "loss", 3, 3))
	want := "attempt 1 complete true samples 3; loss ms map[] n 3 nan 0 median 2 first 1 last 3"
	if diff := cmp.Diff(want, text(w.summaries(t))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSamplesThatNeverComeAreNotWaitedForForEver(t *testing.T) {
	w := newWorld(t)
	w.bring(t, 1, false, at(1, "loss", 1, 1))
	w.bus.Say(finished(1, "p1"))
	w.now = w.now.Add(patience)
	want := "attempt 1 complete false samples 1; loss ms map[] n 1 nan 0 median 1 first 1 last 1"
	if diff := cmp.Diff(want, text(w.summaries(t))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARunWithoutSamplesCostsNothing(t *testing.T) {
	w := newWorld(t)
	w.bus.Say(finished(1))
	w.bring(t, 1, true)
	w.bus.Say(finished(2, "p1"))
	if left, err := w.store.Docs(t.Context(), store.KindUnsummed, "", 10); err != nil || len(left) > 0 {
		t.Errorf("noted %v, %v", left, err)
	}
}

func TestSettings(t *testing.T) {
	if err := (summarise.Settings{Patience: -1, Look: -1}).Validate(); err == nil || !strings.Contains(err.Error(), "patience") || !strings.Contains(err.Error(), "look") {
		t.Error(err)
	}
	if err := (summarise.Settings{}).Validate(); err != nil {
		t.Error(err)
	}
}
