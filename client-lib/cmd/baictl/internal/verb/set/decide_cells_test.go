package set

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestACellIsShownWithTheRunsThatItsSetMakes(t *testing.T) {
	run := func(repetition int32, outcome baiv1.Outcome) *baiv1.CellRun {
		return &baiv1.CellRun{Repetition: repetition, Phase: baiv1.Phase_PHASE_FINISHED, Outcome: outcome}
	}
	got := cellTable(&baiv1.Set{Repetitions: 5}, []*baiv1.Cell{
		{Name: "all", Id: "a", Repetitions: 3, Runs: []*baiv1.CellRun{run(1, baiv1.Outcome_OUTCOME_SUCCEEDED)}},
		{Name: "of an older platform", Id: "b"},
		{
			Name: "some", Id: "c", Repetitions: 5, Selected: &baiv1.RunNumbers{Repetitions: []int32{3, 5}},
			Runs: []*baiv1.CellRun{run(3, baiv1.Outcome_OUTCOME_SUCCEEDED), run(5, baiv1.Outcome_OUTCOME_FAILED)},
		},
		{Name: "none", Id: "d", Repetitions: 5, Selected: &baiv1.RunNumbers{Warmups: []int32{1}}},
		{
			Name: "refused", Id: "e", Repetitions: 3, Refused: &baiv1.RunNumbers{Repetitions: []int32{2, 3}, Warmups: []int32{1}},
			Runs: []*baiv1.CellRun{run(1, baiv1.Outcome_OUTCOME_FAILED)},
		},
	}).Rows
	want := [][]string{
		{"all", "a", "1/3", "0", "0", "0"},
		{"of an older platform", "b", "0/5", "0", "0", "0"},
		{"some", "c", "1/2", "1", "0", "0"},
		{"none", "d", "0/0", "0", "0", "0"},
		{"refused", "e", "0/3", "3", "0", "0"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
