package set

import (
	"context"
	"fmt"

	"github.com/benchmark-ai/bai/descriptors/sweep"
	"github.com/benchmark-ai/bai/services/gateway/set/results"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// CellRuns is a cell of a set with its runs.
type CellRuns struct {
	sweep.Cell

	Index   int         // place in the sweep, from 0
	Counted int         // repetitions that the cell has at most, by the sweep
	Warmups int         // runs before them
	Runs    []store.Run // oldest first, without descriptors
	Skipped int         // repetitions that were not made because the cell has enough

	Selected *RunNumbers // of these runs, those that the set makes; nil: all
	Refused  *RunNumbers // runs that were refused; nil: none
}

// Cells returns up to n cells of a set with their runs, and the token of the next page, empty
// after the last one. Token "" is the first page. A page has at most results.MaxPageRuns runs; a cell
// whose runs do not all fit is continued by the next page. The error is *results.TokenError for a
// token that Cells did not return, and *StateError for a set that has no cells by the rules
// of this release.
func (k *Sets) Cells(ctx context.Context, s Set, token string, n int) (cells []CellRuns, next string, err error) {
	l, err := k.cellPlan(ctx, s)
	if err != nil {
		return nil, "", err
	}
	at, inner, err := results.ParseToken(token, s.Cells)
	if err != nil {
		return nil, "", err
	}
	selected, refused := l.selectedRuns(), l.refusedRuns(s)
	plan, room := l.plan, results.MaxPageRuns
	for ; at < s.Cells && len(cells) < n && room > 0; at++ {
		c := CellRuns{Cell: plan.Cell(at), Index: at, Counted: plan.Repetitions(at), Warmups: plan.Warmup(at)}
		c.Selected, c.Refused = selected.of(at), refused[at]
		c.Runs, inner, err = k.results.Runs(ctx, s.ID, c.Name, inner, room)
		if err == nil {
			c.Skipped, err = k.results.Skipped(ctx, s.results(), at, c.Name)
		}
		if err != nil {
			return nil, "", err
		}
		for i := range c.Runs {
			c.Runs[i].Descriptor = ""
		}
		cells, room = append(cells, c), room-len(c.Runs)
		if inner != "" {
			return cells, results.FormatToken(at, inner), nil
		}
	}
	if at == s.Cells {
		return cells, "", nil
	}
	return cells, results.FormatToken(at, ""), nil
}

// cellPlan returns what a set is made of. The error is *StateError if it has no plan by the
// rules of this release.
func (k *Sets) cellPlan(ctx context.Context, s Set) (loaded, error) {
	l, err := k.plans.get(ctx, s)
	if err == nil && l.invalid != "" {
		err = &StateError{Message: fmt.Sprintf("set %s has no cells any more: %s", s.ID, l.invalid)}
	}
	return l, err
}

// Results returns the results of up to n cells of a set, of all metrics or of those with the
// given names, and the token of the next page, empty after the last one. Token "" is the first
// page. The error is *results.TokenError, *StateError as that of Cells, or *results.SizeError.
func (k *Sets) Results(
	ctx context.Context, s Set, token string, n int, metrics []string,
) (cells []results.CellResults, next string, err error) {
	l, err := k.cellPlan(ctx, s)
	if err != nil {
		return nil, "", err
	}
	page, err := k.results.Page(ctx, s.results(), l.plan, token, n, metrics)
	if page.Live && s.State == StateFinished {
		k.runner.rollups.queue.Add(s.ID)
	}
	if selected := l.selectedRuns(); selected != nil {
		for i, c := range page.Cells {
			page.Cells[i].NotSelected = selected[c.Index] == nil
		}
	}
	return page.Cells, page.Next, err
}
