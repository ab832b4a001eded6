// Package delivertest has the suite that every kind of destination passes.
package delivertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver"
)

// Fixture is a destination, and the way to read it.
type Fixture struct {
	// Open returns the destination as another process has it.
	Open func(t *testing.T) deliver.Destination
	// Rows returns all rows that it has as text, "run value", in any order.
	Rows func(t *testing.T) []string
}

// Rows is a delivery of n rows of a run with the columns run and value, as those of samples.
func Rows(run string, n int) deliver.Delivery {
	return deliver.Delivery{
		Run: run, Columns: []deliver.Column{
			{Name: "run", Value: descriptors.ColumnValue{From: descriptors.FromSample, Field: "metric"}},
			{Name: "value", Number: true, Value: descriptors.ColumnValue{From: descriptors.FromSample, Field: "value"}},
		},
		Rows: func(yield func([]any, error) bool) {
			for i := range n {
				if !yield([]any{run, float64(i)}, nil) {
					return
				}
			}
		},
	}
}

// killRun is the variable with the run that a test's child process delivers half of, before it is killed.
const killRun = "DELIVERTEST_KILL_RUN"

// Run checks the contract of a destination; open returns one without rows.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, p Fixture){
		"rows are stored once, however often they are delivered":    testOnce,
		"eight writers of the same runs store 10,000 rows once":     testEightWriters,
		"a delivery whose rows cannot be read stores nothing":       testHalfRead,
		"a run without rows is delivered":                           testNoRows,
		"a value that is missing, quoted or long is stored as such": testValues,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func testOnce(t *testing.T, p Fixture) {
	t.Helper()
	for range 3 {
		deliverTo(t, p.Open(t), Rows("r1", 3))
		deliverTo(t, p.Open(t), Rows("r2", 1))
	}
	want(t, p, texts(map[string]int{"r1": 3, "r2": 1}))
}

func testEightWriters(t *testing.T, p Fixture) {
	t.Helper()
	runs := map[string]int{"r0": 2500, "r1": 2500, "r2": 2500, "r3": 2500}
	var all sync.WaitGroup
	for w := range 8 {
		to := p.Open(t)
		all.Go(func() {
			for i := range 4 {
				run := fmt.Sprintf("r%d", (i+w)%4)
				if err := to.Deliver(t.Context(), Rows(run, runs[run])); err != nil {
					t.Errorf("writer %d, %s: %v", w, run, err)
				}
			}
		})
	}
	all.Wait()
	want(t, p, texts(runs))
}

func testHalfRead(t *testing.T, p Fixture) {
	t.Helper()
	failed := errors.New("the samples cannot be read")
	d := Rows("r1", 2000)
	whole := d.Rows
	d.Rows = func(yield func([]any, error) bool) {
		n := 0
		for row, err := range whole {
			if n++; n > 1500 {
				yield(nil, failed)
				return
			}
			if !yield(row, err) {
				return
			}
		}
	}
	if err := p.Open(t).Deliver(t.Context(), d); err == nil || err.Error() != failed.Error() {
		t.Fatalf("got %v, want %v", err, failed)
	}
	want(t, p, nil)
	deliverTo(t, p.Open(t), Rows("r1", 2000))
	want(t, p, texts(map[string]int{"r1": 2000}))
}

func testNoRows(t *testing.T, p Fixture) {
	t.Helper()
	deliverTo(t, p.Open(t), Rows("r1", 0))
	want(t, p, nil)
}

func testValues(t *testing.T, p Fixture) {
	t.Helper()
	values := []string{`a"b'c, d; DROP TABLE results`, "two\nlines", "ü"}
	d := Rows("r1", 0)
	d.Rows = func(yield func([]any, error) bool) {
		for i, v := range values {
			if !yield([]any{v, float64(i)}, nil) {
				return
			}
		}
	}
	deliverTo(t, p.Open(t), d)
	var rows []string
	for i, v := range values {
		rows = append(rows, Text(v, float64(i)))
	}
	want(t, p, rows)
}

// RunKilled checks that a destination whose writer is killed with SIGKILL in the middle of a delivery, twice, has no row of it, and all
// rows once after the next delivery. It starts the test named in test again, which opens the same destination; p is that one.
func RunKilled(t *testing.T, p Fixture, test string, env ...string) {
	t.Helper()
	if run := os.Getenv(killRun); run != "" {
		d := Rows(run, 10_000)
		whole := d.Rows
		d.Rows = func(yield func([]any, error) bool) {
			n := 0
			for row, err := range whole {
				if n++; n == 7_000 {
					kill(t)
				}
				if !yield(row, err) {
					return
				}
			}
		}
		t.Fatalf("the process lives: %v", p.Open(t).Deliver(t.Context(), d))
	}
	for range 2 {
		killed(t, test, append(env, killRun+"=r1"))
		want(t, p, nil)
	}
	deliverTo(t, p.Open(t), Rows("r1", 10_000))
	deliverTo(t, p.Open(t), Rows("r1", 10_000))
	want(t, p, texts(map[string]int{"r1": 10_000}))
}

// writers is the value of killRun of a process that delivers all runs of RunKilledWriters.
const writers = "all"

// RunKilledWriters checks that 10,000 rows of eight runs are there once, although the process whose eight writers deliver them is killed
// with SIGKILL twice in the middle of it. Else it is like RunKilled.
func RunKilledWriters(t *testing.T, p Fixture, test string, env ...string) {
	t.Helper()
	const runs, rows = 8, 1250
	all := map[string]int{}
	for i := range runs {
		all[fmt.Sprint("r", i)] = rows
	}
	if os.Getenv(killRun) == writers {
		deliverAll(t, p, all, rows*runs*2/5) // of at most three runs all rows, so that as many are left for the next process
		t.Fatal("the process lives")
	}
	for range 2 {
		killed(t, test, append(env, killRun+"="+writers))
		wantWholeRuns(t, p, all)
	}
	deliverAll(t, p, all, 0)
	want(t, p, texts(all))
}

// deliverAll delivers runs, each by a writer of its own. If killAt is not 0, the process is killed once so many rows were read.
func deliverAll(t *testing.T, p Fixture, runs map[string]int, killAt int64) {
	t.Helper()
	var read atomic.Int64
	var all sync.WaitGroup
	for run, n := range runs {
		d, to := Rows(run, n), p.Open(t)
		whole := d.Rows
		d.Rows = func(yield func([]any, error) bool) {
			for row, err := range whole {
				if read.Add(1) == killAt {
					kill(t)
				}
				if !yield(row, err) {
					return
				}
			}
		}
		all.Go(func() {
			if err := to.Deliver(t.Context(), d); err != nil {
				t.Errorf("%s: %v", run, err)
			}
		})
	}
	all.Wait()
}

// wantWholeRuns checks that a destination has all rows of a run, or none.
func wantWholeRuns(t *testing.T, p Fixture, runs map[string]int) {
	t.Helper()
	has := map[string]int{}
	for _, row := range p.Rows(t) {
		run, _, _ := strings.Cut(row, " ")
		has[run]++
	}
	for run, n := range has {
		if n != runs[run] {
			t.Errorf("after a kill %d of %d rows of %s are there", n, runs[run], run)
		}
	}
	t.Logf("after a kill the rows of %d of %d runs are there", len(has), len(runs))
}

// killed runs a test in a process of its own that kills itself.
func killed(t *testing.T, test string, env []string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+test+"$") //nolint:gosec // this test
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if c.ProcessState.ExitCode() != -1 {
		t.Fatalf("the process was not killed: %v\n%s", err, out)
	}
}

func kill(t *testing.T) {
	t.Helper()
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	select {}
}

// Text is a row as Fixture.Rows returns it.
func Text(run string, value float64) string { return fmt.Sprint(run, " ", value) }

func texts(runs map[string]int) []string {
	var all []string
	for run, n := range runs {
		for i := range n {
			all = append(all, Text(run, float64(i)))
		}
	}
	return all
}

func deliverTo(t *testing.T, to deliver.Destination, d deliver.Delivery) {
	t.Helper()
	if err := to.Deliver(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, p Fixture, want []string) {
	t.Helper()
	got := p.Rows(t)
	slices.Sort(got)
	slices.Sort(want)
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Fatalf("%d rows, want %d (-want +got):\n%.2000s", len(got), len(want), diff)
	}
}
