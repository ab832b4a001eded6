package set

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/sweep"
	"github.com/benchmark-ai/bai/services/gateway/series"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// manyCells returns a set with stop_when, of the largest number of runs, and its plan.
func manyCells(t *testing.T, order string) (Set, *sweep.Plan) {
	t.Helper()
	text := "spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"alpine\"\n[ml]\nbenchmark_code = \"true {{a}} {{b}}\"\n" +
		"[sweep]\norder = \"" + order + "\"\n[sweep.stop_when]\nmetric = \"m\"\nhalf_width = \"2%\"\nmin = 6\nmax = 10\n[sweep.product]\na = " + numbers(100) + "\nb = " + numbers(100) + "\n"
	plan, faults := sweep.Read(parser.Parser{}, "f.toml", []byte(text))
	if plan == nil {
		t.Fatal(faults)
	}
	return Set{State: StateRunning, Cells: plan.Cells(), Runs: plan.Runs(), Repetitions: 10, StopWhen: stopWhenOf(plan.Sweep())}, plan
}

func numbers(n int) string {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	text, _ := json.Marshal(all)
	return string(text)
}

// observeAll returns what a pass finds out if each active run has succeeded, and each cell
// has enough after 8 repetitions.
func observeAll(s Set, plan *sweep.Plan) observation {
	seen := observation{Plan: plan, Submitted: make(map[int]string), Ended: make(map[int]ending), Cells: make(map[int]cellDecision)}
	for _, a := range s.Active {
		seen.Ended[a.Ordinal] = ending{Outcome: event.Succeeded}
	}
	for _, c := range s.Open {
		seen.Cells[c.Cell] = cellDecision{Stop: c.Next == 9}
	}
	return seen
}

func TestTheDocumentOfASetWithManyCellsStaysSmall(t *testing.T) {
	for _, order := range []string{"sequential", "interleaved"} {
		s, plan := manyCells(t, order)
		largest := 0
		for passes := 0; s.State != StateFinished && passes < 100_000; passes++ {
			if s, _ = decide(s, observeAll(s, plan), time.Time{}); passes%50 > 0 {
				continue
			}
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			largest = max(largest, len(text))
		}
		if got, want := fmt.Sprint(s.State, s.Counts.Succeeded, s.Skipped), fmt.Sprint(StateFinished, 80_000, 20_000); got != want {
			t.Errorf("%s: %s, want %s", order, got, want)
		}
		if largest > 30_000 {
			t.Errorf("%s: the document had %d bytes", order, largest)
		}
	}
}

func TestACellGoesOnWhereItsValuesAreNotOfOneSeries(t *testing.T) {
	when := StopWhen{Metric: "m", HalfWidth: 0.02, Min: 6, Max: 10}
	rule, err := when.rule()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		add  func(c *series.Builder, r store.Run)
		want cellDecision
	}{
		"one series that is precise stops": {
			func(c *series.Builder, r store.Run) {
				c.Add(r.Repetition, r, &store.Summaries{Summaries: []store.Summary{{Metric: "m"}}})
			},
			cellDecision{Stop: true},
		},
		"no value at all, and no summary": {func(c *series.Builder, r store.Run) { c.Add(r.Repetition, r, nil) }, cellDecision{}},
		"another metric": {
			func(c *series.Builder, r store.Run) {
				c.Add(r.Repetition, r, &store.Summaries{Summaries: []store.Summary{{Metric: "x"}}})
			},
			cellDecision{Note: `metric "m" of stop_when has no values in cell c: its repetitions go on to 10`},
		},
		"two units": {
			func(c *series.Builder, r store.Run) {
				c.Add(r.Repetition, r, &store.Summaries{Summaries: []store.Summary{{Metric: "m", Unit: "s"}, {Metric: "m", Unit: "ms"}}})
			},
			cellDecision{Note: `metric "m" of stop_when has several units or labels in cell c: its repetitions go on to 10`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &series.Builder{Metrics: []string{"m"}}
			for i := range 9 {
				run := store.Run{}
				run.Repetition = i + 1
				tt.add(c, run)
			}
			if got := decideCell(c, "c", when, rule); got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}
