package sweep_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/sweep"
)

// order is the runs of a plan as cell.repetition, those for warming up with a w.
func order(p *sweep.Plan) string {
	var all []string
	for i := range p.Runs() {
		r := p.Run(i)
		warmup := map[bool]string{true: "w"}[r.Warmup]
		all = append(all, fmt.Sprintf("%d.%s%d", r.Cell, warmup, r.Repetition))
	}
	return strings.Join(all, " ")
}

func TestTheOrderOfTheRuns(t *testing.T) {
	for settings, want := range map[string]string{
		"":                                       "0.1 1.1 2.1",
		"repetitions = 2\nwarmup = 1":            "0.w1 0.1 0.2 1.w1 1.1 1.2 2.w1 2.1 2.2",
		"repetitions = 2\norder = 'interleaved'": "0.1 1.1 2.1 0.2 1.2 2.2",
		"repetitions = 3\nwarmup = 2\norder = 'interleaved'":      "0.w1 0.w2 1.w1 1.w2 2.w1 2.w2 0.1 1.1 2.1 0.2 1.2 2.2 0.3 1.3 2.3",
		"repetitions = 3\nwarmup = 1\norder = 'random'":           "0.w1 1.w1 2.w1 1.1 0.1 0.2 2.2 0.3 2.3 2.1 1.2 1.3",
		"repetitions = 3\nwarmup = 1\norder = 'random'\nseed = 7": "0.w1 1.w1 2.w1 2.1 0.3 2.2 1.1 1.3 2.3 0.1 1.2 0.2",
		"repetitions = 3\norder = 'random'\nseed = -1":            "2.1 2.2 1.2 0.2 1.3 0.3 0.1 1.1 2.3",
	} {
		t.Run(settings, func(t *testing.T) {
			p := read(t, withSize+"[sweep]\n"+settings+"\n[sweep.product]\nsize = [1, 2, 3]\n")
			if diff := cmp.Diff(want, order(p)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARandomOrderDependsOnItsSeed(t *testing.T) {
	seen := map[string]bool{}
	for seed := range 200 {
		p := read(t, withSize+fmt.Sprintf("[sweep]\norder = 'random'\nseed = %d\n[sweep.product]\nsize = [1, 2, 3, 4]\n", seed))
		seen[order(p)] = true
	}
	if len(seen) != 24 {
		t.Errorf("%d of 24 orders", len(seen))
	}
}

// wantEachRunOnce reports runs that have no ordinal, or two.
func wantEachRunOnce(t *testing.T, p *sweep.Plan) {
	t.Helper()
	seen := map[sweep.Run]bool{}
	for i := range p.Runs() {
		r := p.Run(i)
		most := p.Sweep().Repetitions
		if r.Warmup {
			most = p.Sweep().Warmup
		}
		if seen[r] || r.Cell < 0 || r.Cell >= p.Cells() || r.Repetition < 1 || r.Repetition > most {
			t.Fatalf("run %d is %+v", i, r)
		}
		seen[r] = true
		if back := p.Ordinal(r); back != i {
			t.Errorf("run %d has the ordinal %d", i, back)
		}
	}
	if len(seen) != p.Cells()*(p.Sweep().Repetitions+p.Sweep().Warmup) {
		t.Errorf("%d runs", len(seen))
	}
}

func TestEveryRepetitionOfEveryCellIsOneRun(t *testing.T) {
	for _, order := range []string{"sequential", "interleaved", "random"} {
		for warmup := range 3 {
			wantEachRunOnce(t, read(t, withSize+fmt.Sprintf(
				"[sweep]\norder = %q\nrepetitions = 5\nwarmup = %d\n[sweep.product]\nsize = [1, 2, 3, 4]\n\"hardware.cpus\" = [1, 2, 3]\n[[sweep.exclude]]\nsize = 2\n", order, warmup)))
		}
	}
}

func TestWarmUpRunsComeBeforeTheRepetitionsOfTheirCell(t *testing.T) {
	for _, order := range []string{"sequential", "interleaved", "random"} {
		p := read(t, withSize+fmt.Sprintf("[sweep]\norder = %q\nrepetitions = 2\nwarmup = 2\n[sweep.product]\nsize = [1, 2, 3]\n", order))
		begun := map[int]bool{}
		for i := range p.Runs() {
			r := p.Run(i)
			begun[r.Cell] = begun[r.Cell] || !r.Warmup
			if r.Warmup && begun[r.Cell] {
				t.Errorf("%s: run %d warms up cell %d", order, i, r.Cell)
			}
		}
	}
}

// bigSweep has 10,000 cells of three axes.
func bigSweep(settings string) []byte {
	numbers := func(n int) string {
		return "[" + strings.Join(strings.Fields(strings.Trim(fmt.Sprint(slices.Collect(count(n))), "[]")), ", ") + "]"
	}
	return []byte(withSize + "[sweep]\n" + settings + "\n[sweep.product]\n\"hardware.distributed.num_instances\" = " + numbers(10) +
		"\nsize = " + numbers(100) + "\n\"hardware.cpus\" = " + numbers(10) + "\n")
}

func count(n int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i + 2) {
				return
			}
		}
	}
}
