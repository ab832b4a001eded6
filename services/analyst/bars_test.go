package analyst_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/analyst"
	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// Sizes and limits of the bar.
const (
	barTasks   = 20
	barSeries  = 100 // of each task
	barPoints  = 1000
	barTime    = time.Minute
	barMemory  = 150 << 20
	manyPoints = 100_000 // of one series, whose reads are counted
)

// barRun returns the nth run of a task, with a number of series.
func barRun(task string, n, series int) store.RunPoints {
	p := store.RunPoints{
		PointRun: store.PointRun{
			Run: fmt.Sprintf("%s-%06d", task, n), Namespace: "pets", Task: task, Time: begin.Add(time.Duration(n) * time.Hour), Complete: true, Version: fmt.Sprint("v", n/10), Machine: "0a",
		},
		Revision: 1,
	}
	for s := range series {
		v := store.Float(100 + float64((n*7+s*3)%11)/5)
		p.Points = append(p.Points, store.Summary{
			Metric: "rate", Unit: "B/s", Labels: map[string]string{"n": fmt.Sprint(s)}, Direction: event.Higher, N: 1, Min: v, Max: v, Median: v, P90: v, P95: v, P99: v, Mean: v, First: v, Last: v,
		})
	}
	return p
}

// barStore is what the bars need of a store.
type barStore interface {
	store.Runs
	PutPoints(ctx context.Context, p store.RunPoints) error
}

// putBarRun stores the record of a run, and returns the event that its points are stored.
func putBarRun(t *testing.T, s barStore, p store.RunPoints) event.Summarised {
	t.Helper()
	r, c := storetest.NewRun(p.Run, p.Time)
	ended := p.Time.Add(time.Minute)
	r.Phase, r.Outcome, r.Started, r.Ended, r.Descriptor, r.Namespace = event.PhaseFinished, event.Succeeded, &p.Time, &ended, descriptor(slower), p.Namespace
	r.Labels = map[string]string{store.LabelTask: p.Task}
	if err := s.PutRun(t.Context(), r, c); err != nil {
		t.Fatal(err)
	}
	if err := s.PutPoints(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return event.Summarised{Header: event.NewHeader("s-"+r.ID, r.ID, r.Namespace, r.Owner, p.Time), Revision: 1, Complete: true}
}

// memory returns the largest memory of this process since it was called last, and that after a collection of garbage, in bytes.
func memory(t *testing.T) (peak, now int) {
	t.Helper()
	peak = statusBytes(t, "VmHWM")
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	return peak, statusBytes(t, "VmRSS")
}

// statusBytes returns a number of bytes in the status of this process.
func statusBytes(t *testing.T, field string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	kb, err := strconv.Atoi(string(regexp.MustCompile(field + `:\s+(\d+) kB`).FindSubmatch(text)[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// TestAnAnalystKeepsItsBar has 2,000 series of 1,000 points, and looks at one new point of each, twice, if BAI_BARS is set.
func TestAnAnalystKeepsItsBar(t *testing.T) {
	if os.Getenv("BAI_BARS") == "" {
		t.Skip("takes minutes on an idle machine: set BAI_BARS=1")
	}
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for n := range barTasks {
		putBarRuns(t, s, barTask(n), 0, barPoints, barSeries)
	}
	for round := range 2 {
		took, peak, after := barRound(t, s, barPoints+round)
		t.Logf("round %d: %d series in %.3f s, %d MiB at most, %.1f MiB after it", round+1, barTasks*barSeries, took.Seconds(), peak>>20, float64(after)/(1<<20))
		if took > barTime || peak > barMemory {
			t.Errorf("%s and %d MiB, want %s and %d MiB at most", took, peak>>20, barTime, barMemory>>20)
		}
	}
}

func barTask(n int) string { return fmt.Sprintf("task%02d", n) }

// putBarRuns stores the points of the runs of a task from one up to another.
func putBarRuns(t *testing.T, s *sqlite.Store, task string, from, to, series int) {
	t.Helper()
	for ; from < to; from++ {
		if err := s.PutPoints(t.Context(), barRun(task, from, series)); err != nil {
			t.Fatal(err)
		}
	}
}

// barRound looks at the nth run of each task, and returns how long that took, the largest memory, and that after it.
func barRound(t *testing.T, s *sqlite.Store, n int) (took time.Duration, peak, after int) {
	t.Helper()
	var events []event.Summarised
	for task := range barTasks {
		events = append(events, putBarRun(t, s, barRun(barTask(task), n, barSeries)))
	}
	step := analyst.Summarised(barDeps(s), rule.Decide)
	memory(t)
	begun := time.Now()
	for _, ev := range events {
		if _, err := step(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
	}
	took = time.Since(begun)
	peak, after = memory(t)
	return took, peak, after
}

// TestAnAnalystKeepsItsBarOfReads counts the reads of one run whose series has 100 and 100,000 points, if BAI_BARS is set.
func TestAnAnalystKeepsItsBarOfReads(t *testing.T) {
	if os.Getenv("BAI_BARS") == "" {
		t.Skip("takes a minute: set BAI_BARS=1")
	}
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	counted := &countingStore{s, make(map[string]int)}
	step := analyst.Summarised(barDeps(counted), rule.Decide)
	var reads []string
	n := 0
	for _, size := range []int{100, manyPoints} {
		putBarRuns(t, s, "long", n, size, 1)
		ev := putBarRun(t, s, barRun("long", size, 1))
		n = size + 1
		clear(counted.calls)
		begun := time.Now()
		if _, err := step(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
		reads = append(reads, fmt.Sprint(counted.calls))
		all := 0
		for _, n := range counted.calls {
			all += n
		}
		t.Logf("%d points: %d reads in %s, %v", size, all, time.Since(begun).Round(time.Millisecond), counted.calls)
	}
	if reads[0] != reads[1] {
		t.Errorf("with 100 and with %d points: %q", manyPoints, reads)
	}
}

// barDeps are those of an analyst that only decides.
func barDeps(s analyst.Store) analyst.Deps {
	return analyst.Deps{Store: s, Now: func() time.Time { return begin.Add(1001 * time.Hour) }, Log: zap.NewNop()}
}
