package analysis

import (
	"context"
	"fmt"
	"slices"

	"github.com/benchmark-ai/bai/services/analyst/judge/compare"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// CompareRequest names two sides.
type CompareRequest struct {
	Old, New  string // operands
	Scope     Scope
	Metrics   []string // names; none means all
	MinChange float64  // the largest change that does not matter; 0.02 is 2 %
}

// Compare compares two sides. The error is *OperandError, *MissingError or *StateError for a
// request that cannot be answered.
func (a *Analyses) Compare(ctx context.Context, req CompareRequest) (Comparison, error) {
	comparer, err := compare.New(compare.Settings{MinChange: req.MinChange})
	if err != nil {
		return Comparison{}, &OperandError{
			Field: "min_change", Message: fmt.Sprintf("is %v", req.MinChange),
			Remedy: "give at least 0, and less than 1: 0.02 is 2 %",
		}
	}
	r, err := newRules()
	if err != nil {
		return Comparison{}, fmt.Errorf("compare: %w", err)
	}
	base, err := a.side(ctx, "old", req.Old, req)
	if err != nil {
		return Comparison{}, err
	}
	other, err := a.side(ctx, "new", req.New, req)
	if err != nil {
		return Comparison{}, err
	}
	if err := checkComparable(base, other); err != nil {
		return Comparison{}, err
	}
	all := pairSides(base, other, req.Metrics)
	before, err := a.past(ctx, r, base, other, all)
	if err != nil {
		return Comparison{}, err
	}
	return compareSides(comparer, base, other, all, before)
}

// side resolves an operand and reads its results.
func (a *Analyses) side(ctx context.Context, field, operand string, req CompareRequest) (results, error) {
	s, err := a.resolve(ctx, field, operand, req.Scope)
	if err != nil {
		return results{}, err
	}
	all, err := a.sideMembers(ctx, s, req.Metrics)
	return newResults(s, all), err
}

// past returns the history of the task of the old side, from before the first run of both: of the
// cells and the metrics in which a side has too few runs of its own.
func (a *Analyses) past(ctx context.Context, r rules, base, other results, all paired) (past, error) {
	cells, metrics := all.wantsOfPast()
	first := base.members[0].run
	task, until := first.Labels[store.LabelTask], first.Created
	if created := other.members[0].run.Created; created.Before(until) {
		until = created
	}
	if task == "" || len(cells) == 0 {
		return past{}, nil
	}
	found, err := a.newest(ctx, HistoryRequest{
		Task: task, Namespace: first.Namespace, Until: until, Limit: min(maxPast*len(cells), maxPoints), cells: cells,
	})
	if err != nil {
		return past{}, err
	}
	runs := slices.DeleteFunc(found.runs, func(r store.Run) bool { return other.has(r.ID) || base.has(r.ID) })
	members, err := a.historyMembers(ctx, runs, metrics)
	if err != nil {
		return past{}, err
	}
	r.oneUnit = true
	return past{History: r.history(members, metrics), known: true}, nil
}

// maxPast is how many runs of a cell before a comparison are looked at for the spread between runs.
const maxPast = 60
