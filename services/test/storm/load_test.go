package storm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// load is the work of a platform: counting runs, one after the other in each of some
// lanes.
type load struct {
	w          *harness
	n, rate    int // of each run: numbers, and numbers a second
	minNumbers int // numbers to be counted in all

	stop    atomic.Bool
	lanes   sync.WaitGroup
	mu      sync.Mutex
	runs    []*countingRun
	planned int // numbers of runs that have begun
}

// newLoad starts a load in some lanes; if piped, the last one emits through the FIFO.
func newLoad(w *harness, lanes, n, rate, least int, piped bool) *load {
	l := &load{w: w, n: n, rate: rate, minNumbers: least}
	for lane := range lanes {
		l.lanes.Go(func() { l.lane(lane, piped && lane == lanes-1) })
	}
	return l
}

// lane runs one run after the other until it is stopped and has counted enough.
func (l *load) lane(lane int, pipe bool) {
	for i := 0; l.wantsMore() && !l.w.t.Failed() && l.w.t.Context().Err() == nil; i++ {
		c := l.w.submit(fmt.Sprintf("lane-%d-%d", lane, i), l.w.descriptor(l.n, l.rate, pipe, ""), l.n, pipe)
		if c == nil {
			return
		}
		l.mu.Lock()
		l.runs = append(l.runs, c)
		l.planned += 2 * l.n
		l.mu.Unlock()
		<-c.done
	}
}

// wantsMore says whether a further run is to begin.
func (l *load) wantsMore() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.stop.Load() || l.planned < l.minNumbers
}

// allRuns are the runs so far.
func (l *load) allRuns() []*countingRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.runs)
}

// stored is how many numbers were seen in the store so far.
func (l *load) stored() (n int64) {
	for _, c := range l.allRuns() {
		n += c.samples.Load() + c.lines.Load()
	}
	return n
}

// progress is the stored progress of active runs.
type progress map[*countingRun][2]int64

func (l *load) progress() progress {
	m := progress{}
	for _, c := range l.allRuns() {
		if !c.isDone() {
			m[c] = [2]int64{c.samples.Load(), c.lines.Load()}
		}
	}
	return m
}

// awaitProgress waits until of each run that was under way more is stored, or all.
func (l *load) awaitProgress(since progress, late time.Time) {
	l.w.t.Helper()
	for c, was := range since {
		for !c.isDone() && (c.lines.Load() <= was[1] || c.samples.Load() <= was[0]) {
			if time.Now().After(late) {
				l.w.t.Fatalf("of run %s nothing more is stored: %v", c.id, was)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// awaitStored waits until so many numbers are stored.
func (l *load) awaitStored(least int64, late time.Time) {
	l.w.t.Helper()
	for l.stored() < least {
		if time.Now().After(late) {
			l.w.t.Fatalf("%d numbers are stored, want %d at least", l.stored(), least)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// finish waits until all started runs have ended.
func (l *load) finish() {
	l.stop.Store(true)
	l.lanes.Wait()
}

// wantEnded checks that runs have ended well, each once, and that all they wrote is
// stored once.
func (w *harness) wantEnded(runs []*countingRun) {
	w.t.Helper()
	for _, c := range runs {
		<-c.done
		how, err := w.howItEnded(c.id)
		if err != nil || how != baiv1.Outcome_OUTCOME_SUCCEEDED {
			w.t.Errorf("run %s ended as %s, %v", c.id, how, err)
		}
		again := c.unread()
		if err := errors.Join(again.readSamples(w.t.Context()), again.readLines(w.t.Context())); err != nil {
			w.t.Errorf("read %s: %v", c.id, err)
			continue
		}
		if err := again.violationError(true); err != nil {
			w.t.Errorf("run %s, in the end: %v", c.id, err)
		}
		if !c.pipe {
			w.wantSummary(c)
		}
	}
}

// howItEnded returns how a run ended, which it must have done once.
func (w *harness) howItEnded(run string) (how baiv1.Outcome, err error) {
	history, err := w.api.WatchRun(w.t.Context(), &baiv1.WatchRunRequest{Run: run})
	if err != nil {
		return how, err
	}
	for ends := 0; ; {
		change, err := history.Recv()
		switch {
		case errors.Is(err, io.EOF) && ends != 1:
			return how, fmt.Errorf("its history ends it %d times", ends)
		case errors.Is(err, io.EOF):
			return how, nil
		case err != nil:
			return how, err
		}
		if o := change.GetChange().GetOutcome(); o != baiv1.Outcome_OUTCOME_UNSPECIFIED {
			how, ends = o, ends+1
		}
	}
}

// wantSummary waits for a run's summaries, and checks them.
func (w *harness) wantSummary(c *countingRun) {
	w.t.Helper()
	for late := time.Now().Add(waitTimeout); ; time.Sleep(pollInterval) {
		r, err := w.results.GetSummaries(w.t.Context(), &baiv1.GetSummariesRequest{Run: c.id})
		i := slices.IndexFunc(r.GetSummaries(), func(s *baiv1.MetricSummary) bool { return s.GetMetric() == "n" })
		if err == nil && i >= 0 && r.GetComplete() {
			if s := r.GetSummaries()[i]; s.GetN() != int64(c.n) || s.GetMin() != 1 || s.GetMax() != float64(c.n) {
				w.t.Errorf("run %s is summed up as %v, want the numbers from 1 to %d", c.id, s, c.n)
			}
			return
		}
		if time.Now().After(late) {
			w.t.Errorf("run %s is not summed up: %v, %v", c.id, r, err)
			return
		}
	}
}

// wantInIndices asks Elasticsearch itself how many numbers it holds.
func (w *harness) wantInIndices(runs []*countingRun) {
	w.t.Helper()
	if w.store == nil {
		return
	}
	samples, lines := 0, 0
	for _, c := range runs {
		lines += c.n
		if !c.pipe {
			samples += c.n
		}
	}
	for query, want := range map[string]int{
		"/" + w.prefix + "-metrics-*/_count?q=metric.name:n": samples,
		"/" + w.prefix + "-logs-*/_count":                    lines,
	} {
		if got, err := w.countDocuments(w.t.Context(), query); err != nil || got != want {
			w.t.Errorf("%s: %d documents, %v; want %d", query, got, err, want)
		}
	}
}

// logPipes logs the number of samples through FIFOs, and those that were lost or stored
// twice.
func (l *load) logPipes(kills int) {
	sent, lost, twice, records := 0, 0, 0, 0
	for _, c := range l.allRuns() {
		if !c.pipe {
			continue
		}
		records++
		sent += c.n
		for i := 1; i <= c.n; i++ {
			switch n := c.piped[i]; {
			case n == 0:
				lost++
			case n > 1:
				twice += n - 1
			}
		}
	}
	if records == 0 {
		return
	}
	l.w.t.Logf("through the FIFO: %d samples in %d runs, %d lost, %d stored twice, with %d kills of collectors", sent, records, lost, twice, kills)
	const held = 64 << 10 / len(`{"f": 1}`+"\n") // bytes that a killed collector may have read and not yet written
	if twice > 0 || lost > kills*held {
		l.w.t.Errorf("through the FIFO %d were lost and %d stored twice; at most %d may be lost, and none is stored twice", lost, twice, kills*held)
	}
}

// wait waits for a context or a time, and says whether the time has come.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
