package analysis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// maxRuns is the number of runs that a side has at most.
const maxRuns = 1000

// pageRuns is the number of runs that are read from the store together.
const pageRuns = 200

// Scope is where names are looked up.
type Scope struct {
	Owner     string // of the names of runs and sets
	Namespace string // of tasks and baselines
}

// side is the runs that an operand names, those that do not count among them.
type side struct {
	operand string
	runs    []store.Run // the oldest first
	set     string      // ID of the set whose runs they are; empty for none
	ofTask  bool        // they are runs of a task in a range of time
}

// resolve finds the runs of an operand. The error is *OperandError, *MissingError or
// *StateError if there are none, or too many.
func (a *Analyses) resolve(ctx context.Context, field, text string, in Scope) (side, error) {
	o, err := parseOperand(field, text, a.deps.Now())
	if err != nil {
		return side{}, err
	}
	s := side{operand: text}
	switch {
	case o.baseline != "":
		s.runs, s.set, err = a.baselineRuns(ctx, in.Namespace, o.baseline)
	case o.tasks != nil:
		s.ofTask = true
		s.runs, err = a.taskRuns(ctx, in.Namespace, *o.tasks)
	default:
		s.runs, s.set, err = a.referred(ctx, in.Owner, o.ref)
	}
	if err != nil {
		return side{}, err
	}
	if len(s.runs) == 0 {
		return side{}, &StateError{Message: fmt.Sprintf("%s has no runs (name another)", text)}
	}
	slices.SortFunc(s.runs, func(a, b store.Run) int { return strings.Compare(a.ID, b.ID) })
	return s, nil
}

// referred finds the run or the set with that ID or name.
func (a *Analyses) referred(ctx context.Context, owner, ref string) (runs []store.Run, set string, err error) {
	run, err := a.findRun(ctx, owner, ref)
	if err == nil {
		return []store.Run{run}, "", nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, "", err
	}
	found, err := a.findSet(ctx, owner, ref)
	if err != nil {
		return nil, "", err
	}
	runs, err = a.listRuns(ctx, store.RunFilter{Set: found}, ref)
	return runs, found, err
}

// findRun returns the run with that ID or name, or store.ErrNotFound.
func (a *Analyses) findRun(ctx context.Context, owner, ref string) (store.Run, error) {
	id := strings.ToLower(ref)
	if !submit.IsRunID(ref) {
		var err error
		if id, err = a.deps.RunByName(ctx, owner, ref); err != nil {
			return store.Run{}, err
		}
	}
	return a.deps.Store.Run(ctx, id)
}

// findSet returns the ID of the set with that ID or name.
func (a *Analyses) findSet(ctx context.Context, owner, ref string) (string, error) {
	found, err := a.deps.Sets.Find(ctx, owner, ref)
	if missing := new(set.MissingError); errors.As(err, &missing) {
		return "", &MissingError{Message: fmt.Sprintf("run or set %.100q of owner %.100q does not exist", ref, owner)}
	}
	return found.ID, err
}

// taskRuns returns the runs of a task in a range of time.
func (a *Analyses) taskRuns(ctx context.Context, namespace string, t taskRuns) ([]store.Run, error) {
	return a.listRuns(ctx, store.RunFilter{
		Namespace: namespace, Labels: map[string]string{store.LabelTask: t.task}, Since: t.since, Until: t.until,
	}, t.task)
}

// listRuns returns the runs of a filter, the newest first. The error is *StateError if they
// are more than a side may have.
func (a *Analyses) listRuns(ctx context.Context, f store.RunFilter, name string) (all []store.Run, err error) {
	for token := ""; ; {
		var page []store.Run
		if page, token, err = a.deps.Store.Runs(ctx, f, token, pageRuns); err != nil {
			return nil, fmt.Errorf("list the runs of %s: %w", name, err)
		}
		if all = append(all, page...); len(all) > maxRuns {
			return nil, &StateError{Message: fmt.Sprintf("%.100s has more than %d runs (take a shorter range, or a part of the set)", name,
				maxRuns)}
		}
		if token == "" {
			return all, nil
		}
	}
}
