package collect_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// many are emitted lines with a series each.
func many(from, to int) string {
	var text strings.Builder
	for i := from; i < to; i++ {
		_, _ = fmt.Fprintf(&text, `{"m": 1, "@labels": {"n": "%d"}}`+"\n", i)
	}
	return text.String()
}

func TestOfAllThatABenchmarkWritesSoManySeriesAreKept(t *testing.T) {
	v := newVolume(t)
	s := settings(v)
	s.Metrics = []pod.Metric{{Name: "loss", Pattern: `gpu(?P<gpu>\d+) loss=(\d)`}}
	v.append(t, pod.System, `{"cpu": 1}`+"\n")                                                          // not counted, and always shipped
	v.record(t, stdoutRecord("gpu1 loss=1\ngpu2 loss=2\n"))                                             // read first
	v.append(t, pod.Metrics, many(0, extract.MaxSeries)+many(0, 1))                                     // the last two series are too many
	v.append(t, pod.Spool, many(0, 2)+`{"other": 1}`+"\n"+many(extract.MaxSeries-3, extract.MaxSeries)) // known, known, new, known, new, new
	v.exit(t, pod.Exit{})
	store := newStore(t)
	collectAll(t, s, store)
	store.complete(t)
	count := func(stream string) event.End { e := store.end(stream, event.TopicMetrics); e.Last = 0; return e }
	want(t, count(event.StreamSystem), event.End{Count: 1})
	want(t, count(event.StreamOutput), event.End{Count: 2})
	want(t, count(event.StreamMetrics), event.End{Count: extract.MaxSeries - 1, Dropped: 2, Reason: extract.TooManySeries(extract.MaxSeries)})
	want(t, count(event.StreamFIFO), event.End{Count: 3, Dropped: 3, Reason: extract.TooManySeries(extract.MaxSeries)})
}

// TestTheSameSeriesAreKeptAfterAKill: the series of before the kill continue, and no new series takes their place.
func TestTheSameSeriesAreKeptAfterAKill(t *testing.T) {
	v := newVolume(t)
	s := settings(v)
	v.append(t, pod.Metrics, many(0, extract.MaxSeries-10))
	store := newStore(t)
	collectUntil(t, s, store, func() bool { return len(store.samples()) == extract.MaxSeries-10 })
	v.append(t, pod.Metrics, many(extract.MaxSeries-10, extract.MaxSeries+10)+many(0, 10)+many(extract.MaxSeries, extract.MaxSeries+10))
	collectUntil(t, s, store, func() bool { return strings.Contains(v.saved(), `"dropped":20`) })
	v.append(t, pod.Metrics, many(extract.MaxSeries+5, extract.MaxSeries+6)+many(extract.MaxSeries-1, extract.MaxSeries))
	v.exit(t, pod.Exit{})
	collectAll(t, s, store)
	store.complete(t)
	end := store.end(event.StreamMetrics, event.TopicMetrics)
	end.Last = 0
	want(t, end, event.End{Count: extract.MaxSeries + 11, Dropped: 21, Reason: extract.TooManySeries(extract.MaxSeries)})
}

func TestTheSeriesOfAnotherRunAreForgotten(t *testing.T) {
	v := newVolume(t)
	v.append(t, pod.Metrics, many(0, extract.MaxSeries+1))
	v.exit(t, pod.Exit{})
	collectAll(t, settings(v), newStore(t))
	v.append(t, pod.Metrics, `{"other": 1}`+"\n"+many(0, extract.MaxSeries-1))
	s := settings(v)
	s.Header.Run = "r2"
	store := newStore(t)
	collectAll(t, s, store)
	want(t, store.end(event.StreamMetrics, event.TopicMetrics).Dropped, 2)
}

// collectUntil collects until a condition is true, and then stops the collector while the store refuses all events.
func collectUntil(t *testing.T, s collect.Settings, store *fakeStore, until func() bool) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	c, done := collector(t, s, store), make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	store.waitUntil(t, until)
	store.mu.Lock()
	store.refuse = func(event.Event) error { return context.Canceled }
	store.mu.Unlock()
	kill()
	if err := <-done; err == nil {
		t.Fatal("it ended well")
	}
	store.mu.Lock()
	store.refuse = nil
	store.mu.Unlock()
}

func TestAPodKeepsItsShareOfTheSeriesOfItsRun(t *testing.T) {
	v := newVolume(t)
	s := settings(v)
	s.Series = 468
	v.append(t, pod.Metrics, many(0, 500))
	v.exit(t, pod.Exit{})
	store := newStore(t)
	collectAll(t, s, store)
	store.complete(t)
	end := store.end(event.StreamMetrics, event.TopicMetrics)
	end.Last = 0
	want(t, end, event.End{Count: 468, Dropped: 32, Reason: extract.TooManySeries(468)})
}
