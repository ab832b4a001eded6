package set

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/sweep"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// maxPageRuns is the number of runs in one page of cells.
const maxPageRuns = 1000

// CellRuns is a cell of a set with its runs.
type CellRuns struct {
	sweep.Cell

	Index   int         // place in the sweep, from 0
	Counted int         // repetitions that the cell has at most
	Warmups int         // runs before them
	Runs    []store.Run // oldest first, without descriptors
	Skipped int         // repetitions that were not made because the cell has enough
}

// Cells returns up to n cells of a set with their runs, and the token of the next page, empty
// after the last one. Token "" is the first page. A page has at most maxPageRuns runs; a cell
// whose runs do not all fit is continued by the next page. The error is *TokenError for a
// token that Cells did not return, and *StateError for a set that has no cells by the rules
// of this release.
func (k *Sets) Cells(ctx context.Context, s Set, token string, n int) (cells []CellRuns, next string, err error) {
	plan, err := k.cellPlan(ctx, s)
	if err != nil {
		return nil, "", err
	}
	at, inner, err := parseToken(token, s.Cells)
	if err != nil {
		return nil, "", err
	}
	room := maxPageRuns
	for ; at < s.Cells && len(cells) < n && room > 0; at++ {
		c := CellRuns{Cell: plan.Cell(at), Index: at, Counted: plan.Repetitions(at), Warmups: plan.Warmup(at)}
		c.Runs, inner, err = k.cells.runs(ctx, s, c.Name, inner, room)
		if err == nil {
			c.Skipped, err = k.cells.skipped(ctx, s, at, c.Name)
		}
		if err != nil {
			return nil, "", err
		}
		for i := range c.Runs {
			c.Runs[i].Descriptor = ""
		}
		cells, room = append(cells, c), room-len(c.Runs)
		if inner != "" {
			return cells, formatToken(at, inner), nil
		}
	}
	if at == s.Cells {
		return cells, "", nil
	}
	return cells, formatToken(at, ""), nil
}

// cellPlan returns the plan of a set. The error is *StateError if it has none by the rules
// of this release.
func (k *Sets) cellPlan(ctx context.Context, s Set) (*sweep.Plan, error) {
	l, err := k.plans.get(ctx, s)
	if err != nil {
		return nil, err
	}
	if l.invalid != "" {
		return nil, &StateError{Message: fmt.Sprintf("set %s has no cells any more: %s", s.ID, l.invalid)}
	}
	return l.plan, nil
}

// cellStore reads the runs of cells.
type cellStore struct{ store Store }

// runs returns up to n runs of a cell, oldest first, and the token of the next ones.
func (k cellStore) runs(ctx context.Context, s Set, cell, token string, n int) ([]store.Run, string, error) {
	runs, next, err := k.store.Runs(ctx, store.RunFilter{Set: s.ID, Cell: cell, Oldest: true}, token, n)
	if errors.Is(err, store.ErrCursor) {
		return nil, "", &TokenError{}
	}
	return runs, next, err
}

// skipped returns the number of repetitions that a cell lacks because it has enough: those
// after its last run.
func (k cellStore) skipped(ctx context.Context, s Set, cell int, name string) (int, error) {
	if !s.isStopped(cell) {
		return 0, nil
	}
	last, _, err := k.store.Runs(ctx, store.RunFilter{Set: s.ID, Cell: name}, "", 1)
	if err != nil || len(last) == 0 {
		return 0, err
	}
	return s.Repetitions - last[0].Repetition, nil
}

// formatToken returns the token of the page that begins with a cell, after its runs up to an
// inner token.
func formatToken(cell int, inner string) string { return strconv.Itoa(cell) + "." + inner }

// parseToken returns the cell with which a page begins, and the token of its runs.
func parseToken(token string, cells int) (cell int, inner string, err error) {
	if token == "" {
		return 0, "", nil
	}
	first, inner, found := strings.Cut(token, ".")
	cell, err = strconv.Atoi(first)
	if err != nil || !found || cell < 0 || cell >= cells {
		return 0, "", &TokenError{}
	}
	return cell, inner, nil
}
