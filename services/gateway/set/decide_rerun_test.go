package set

import (
	"fmt"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/sweep"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// planOfOneCell returns the plan of a sweep with that text and one cell.
func planOfOneCell(t *testing.T, table string) *sweep.Plan {
	t.Helper()
	plan, faults := sweep.Read(parser.Parser{}, "f.toml", []byte(`spec_version = "1.0"
[info]
description = "x"
[hardware]
cpus = 1
[env]
docker_image = "x"
[ml]
benchmark_code = "x {{n}}"
[sweep]
`+table+`
[sweep.product]
n = [1]
`))
	if plan == nil {
		t.Fatal(faults)
	}
	return plan
}

func TestWhichRunsAreMadeAgain(t *testing.T) {
	plan := planOfOneCell(t, "warmup = 1\nrepetitions = 2")
	ended := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	finished := Set{State: StateFinished, SetRetention: store.SetRetention{Ended: ended}, Cells: 1, Runs: 3, Next: 3}
	succeeded := store.Run{Phase: event.PhaseFinished, Outcome: event.Succeeded, Lineage: event.Lineage{Repetition: 1, Warmup: true}}
	failed := store.Run{Phase: event.PhaseFinished, Outcome: event.Failed, Lineage: event.Lineage{Repetition: 1}}
	goesOn := store.Run{Phase: event.PhaseRunning, Lineage: event.Lineage{Repetition: 2}}
	for name, tt := range map[string]struct {
		change   func(*Set)
		selected []int
		listed   []store.Run
		after    time.Duration // since the end of the set
		want     string        // runs that are made again, and those to be read
	}{
		"runs that succeeded are not made again":           {listed: []store.Run{succeeded, failed}, want: "[1] [2]"},
		"a list that is behind decides about no other run": {listed: []store.Run{succeeded, failed, goesOn}, want: "[1] [2]"},
		"after a while, a run that is not listed does not exist": {
			listed: []store.Run{succeeded, failed}, after: 10 * time.Minute, want: "[1 2] []",
		},
		"runs that were not made need not be read": {
			change: func(s *Set) { s.Next = 1 }, listed: []store.Run{succeeded}, want: "[1 2] []",
		},
		"neither do runs that were refused or withdrawn": {
			change: func(s *Set) { s.Refused, s.Withdrawn = []byte{0b10}, []int{2} }, listed: []store.Run{succeeded}, want: "[1 2] []",
		},
		"a repetition that was skipped is not made again": {
			change: func(s *Set) { s.StopWhen, s.Stopped = &StopWhen{Min: 1}, []byte{1} },
			listed: []store.Run{succeeded, failed}, after: time.Hour, want: "[1] []",
		},
		"of a rerun, its own runs are made again": {
			selected: []int{0, 2}, listed: []store.Run{succeeded}, after: time.Hour, want: "[1] []",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, listed := finished, make(listedRuns)
			if tt.change != nil {
				tt.change(&s)
			}
			for _, r := range tt.listed {
				listed.add(0, r)
			}
			again, unknown := decideRerun(s, loaded{plan: plan, selected: tt.selected}, listed, ended.Add(tt.after))
			if got := fmt.Sprint(again, unknown); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestTheSelectionOfARerunOfARerunIsOfTheSweep(t *testing.T) {
	plan := planOfOneCell(t, "repetitions = 10")
	if got := fmt.Sprint(bitsOf(loaded{plan: plan, selected: []int{1, 4, 9}}.selection([]int{0, 2}))); got != "[1 9]" {
		t.Errorf("%s", got)
	}
}
