package fetcher

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/fetcher/queue"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// Rules of the gateway about the events of a run that has waited for hours.
const (
	gatewayDebounce   = 5 * time.Minute  // it does not record an event that follows another within this time
	gatewayStaleAfter = 15 * time.Minute // it regards a run as stalled after this time
)

// waitingOrder is a run that waits for its data, as the gateway sees it.
type waitingOrder struct {
	reported     []string
	lastStoredAt time.Time // time of the last recorded event
}

// day simulates a day of runs with one source each, on a fetcher with one transfer at a
// time that reports why the transfer waits. It returns the events of each run.
func day(t *testing.T, runs int, why string) map[string]*waitingOrder {
	t.Helper()
	b := newTestQueue()
	all, ids := make(map[string]*waitingOrder), make(map[string]bool)
	for i := range runs {
		s := submitted(fmt.Sprintf("r%02d", i))
		b.AddOrder(dataset.Order{Submitted: s, Sources: []dataset.Source{{URL: fmt.Sprint("https://example.com/", i)}}, RequestedAt: noon})
		all[s.Run] = &waitingOrder{lastStoredAt: noon}
	}
	b.StartNext(t.Context(), noon)
	b.SetWaitReason(dataset.Source{URL: "https://example.com/0"}, why)
	for now := noon; now.Before(noon.Add(24 * time.Hour)); now = now.Add(time.Minute) {
		for _, ev := range b.Report(now) {
			if ids[ev.Head().ID] {
				t.Fatalf("at %s something is said again, which is no news: %+v", now, ev)
			}
			ids[ev.Head().ID] = true
			all[ev.Head().Run].record(t, ev, now)
		}
		for run, w := range all {
			if now.Sub(w.lastStoredAt) >= gatewayStaleAfter {
				t.Fatalf("at %s nothing was heard of run %s since %s", now, run, w.lastStoredAt)
			}
		}
	}
	return all
}

func (w *waitingOrder) record(t *testing.T, ev event.Event, now time.Time) {
	t.Helper()
	s, ok := ev.(event.Status)
	if !ok {
		t.Fatalf("a %T is said", ev)
	}
	w.reported = append(w.reported, s.Message)
	if now.Sub(w.lastStoredAt) >= gatewayDebounce {
		w.lastStoredAt = now
	}
}

func TestARunThatWaitsForItsDataForADayIsNeverForgotten(t *testing.T) {
	for name, tt := range map[string]struct {
		runs  int
		first string // report of the run whose transfer is running
		why   string
	}{
		"for a source that says when to come again": {runs: 3, why: "answers 429 Too Many Requests", first: "/0: answers 429 Too Many Requests"},
		"for a source from which nothing comes":     {runs: 3, first: "sends nothing"},
		"among many":                                {runs: 50, first: "sends nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			all := day(t, tt.runs, tt.why)
			for run, w := range all {
				if n := len(w.reported); n < 24*6 || n > 24*15 {
					t.Errorf("of run %s something is said %d times a day", run, n)
				}
			}
			if message := all["r00"].reported[0]; !strings.Contains(message, tt.first) {
				t.Errorf("of the first it is said: %s", message)
			}
			if message := all["r02"].reported[0]; !strings.Contains(message, "https://example.com/2 waits for a free transfer (1 ahead)") {
				t.Errorf("of the third it is said: %s", message)
			}
		})
	}
}

func TestARetryIsToldWithItsReasonAtOnceAndOnce(t *testing.T) {
	b := newTestQueue()
	from := dataset.Source{URL: "https://example.com/0"}
	b.AddOrder(dataset.Order{Submitted: submitted("r0"), Sources: []dataset.Source{from}, RequestedAt: noon})
	b.StartNext(t.Context(), noon)
	b.Report(noon)
	var messages []string
	for i := range 60 {
		if try := i/20 + 2; i%20 == 0 {
			b.SetWaitReason(from, fmt.Sprintf("connection refused, retrying in 20s (try %d of 7)", try))
		}
		for _, ev := range b.Report(noon.Add(time.Duration(i+1) * time.Second)) {
			if s, ok := ev.(event.Status); ok {
				messages = append(messages, s.Message)
			}
		}
	}
	var want []string
	for try := 2; try <= 4; try++ {
		want = append(want, fmt.Sprintf("fetching 1 data set: https://example.com/0: connection refused, retrying in 20s (try %d of 7)", try))
	}
	if diff := cmp.Diff(want, messages); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
}

func TestOfAPrefetchItIsNotedWhatItWaitsForUntilItMoves(t *testing.T) {
	b := newTestQueue()
	from := dataset.Source{URL: "https://example.com/0"}
	b.AddOrder(dataset.Order{Submitted: submitted("r0"), Sources: []dataset.Source{from}, RequestedAt: noon, Prefetch: true})
	b.StartNext(t.Context(), noon)
	b.Report(noon)
	b.SetWaitReason(from, "connection refused")
	notes := b.PrefetchNotes(noon.Add(time.Minute))
	notes = append(notes, b.PrefetchNotes(noon.Add(time.Hour))...)
	b.SetProgress(from, 10)
	if notes = append(notes, b.PrefetchNotes(noon.Add(2*time.Hour))...); len(notes) != 2 || notes[0] != "connection refused" || notes[1] != "" {
		t.Errorf("noted %q", notes)
	}
}

func TestOfARunWhoseDataMoveNothingElseIsSaid(t *testing.T) {
	b := newTestQueue()
	from := dataset.Source{URL: "https://example.com/0"}
	b.AddOrder(dataset.Order{Submitted: submitted("r0"), Sources: []dataset.Source{from}, RequestedAt: noon})
	b.StartNext(t.Context(), noon)
	for i := range 3600 {
		b.SetProgress(from, int64(i))
		for _, ev := range b.Report(noon.Add(time.Duration(i) * time.Second)) {
			if s, ok := ev.(event.Status); !ok || s.Progress.Unit != "bytes" {
				t.Fatalf("after %d s it is said: %+v", i, ev)
			}
		}
	}
}

// testQueue is a queue with the time as an argument, and the downloads that it started.
type testQueue struct {
	*queue.Queue

	started map[string]*queue.Download
}

func newTestQueue() testQueue {
	return testQueue{queue.New(func() {}), make(map[string]*queue.Download)}
}

// AddOrder adds an order that lacks all its sources.
func (q testQueue) AddOrder(o dataset.Order) {
	q.Add(o)
	q.SetMissing(o.Submitted.Run, decide(o, runActive, nil).Missing, 0)
}

// StartNext starts the next download.
func (q testQueue) StartNext(ctx context.Context, now time.Time) {
	d, _ := q.Queue.StartNext(ctx, now)
	q.started[d.Key] = d
}

// SetProgress sets the number of bytes that a source has sent.
func (q testQueue) SetProgress(s dataset.Source, done int64) {
	q.started[s.Key()].SetProgress(done, -1)
}

// SetWaitReason makes the download of a source wait.
func (q testQueue) SetWaitReason(s dataset.Source, why string) { q.started[s.Key()].SetWaitReason(why) }

// PrefetchNotes returns the wait reasons of prefetches at that time.
func (q testQueue) PrefetchNotes(now time.Time) []string {
	var all []string
	for _, w := range q.TakeWaits(now, heartbeatInterval(1), progressInterval) {
		all = append(all, w.Reason)
	}
	return all
}

// Report returns the reports to users at that time.
func (q testQueue) Report(now time.Time) []event.Event {
	var all []event.Event
	for _, p := range q.TakeProgress(now, progressInterval) {
		all = append(all, progressStatus(p))
	}
	for _, w := range q.TakeWaits(now, heartbeatInterval(len(q.Runs())), progressInterval) {
		all = append(all, waitStatus(w))
	}
	return all
}
