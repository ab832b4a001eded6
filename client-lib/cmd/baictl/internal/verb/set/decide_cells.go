package set

import (
	"cmp"
	"fmt"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// repetitions returns how many repetitions a set makes of a cell.
func repetitions(got *baiv1.Set, c *baiv1.Cell) int32 {
	if selected := c.GetSelected(); selected != nil {
		return int32(len(selected.GetRepetitions())) //nolint:gosec // a set has no more runs
	}
	return cmp.Or(c.GetRepetitions(), got.GetRepetitions())
}

// cellTable has a line for each cell, with the numbers of its runs.
func cellTable(got *baiv1.Set, cells []*baiv1.Cell) printer.Table {
	t := printer.Table{Columns: []printer.Column{
		{Title: "CELL", Flex: true},
		{Title: "ID", Optional: true},
		{Title: "SUCCEEDED", Right: true},
		{Title: "FAILED", Right: true},
		{Title: "CANCELED", Right: true},
		{Title: "ACTIVE", Right: true},
	}}
	if got.GetStopWhen() != nil {
		t.Columns = append(t.Columns, printer.Column{Title: "SKIPPED", Right: true})
	}
	for _, c := range cells {
		failed := len(c.GetRefused().GetRepetitions())
		var succeeded, canceled, active int
		for _, run := range c.GetRuns() {
			switch {
			case run.GetWarmup():
			case run.GetPhase() != baiv1.Phase_PHASE_FINISHED:
				active++
			case run.GetOutcome() == baiv1.Outcome_OUTCOME_SUCCEEDED:
				succeeded++
			case run.GetOutcome() == baiv1.Outcome_OUTCOME_CANCELED:
				canceled++
			default:
				failed++
			}
		}
		row := []string{
			c.GetName(), c.GetId(), fmt.Sprintf("%d/%d", succeeded, repetitions(got, c)), fmt.Sprint(failed),
			fmt.Sprint(canceled), fmt.Sprint(active),
		}
		if got.GetStopWhen() != nil {
			row = append(row, fmt.Sprint(c.GetSkipped()))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
