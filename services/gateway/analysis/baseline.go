package analysis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Baseline is a name for runs that others are compared with.
type Baseline struct {
	Name      string             `json:"name"`
	Namespace string             `json:"namespace"`
	Revisions []BaselineRevision `json:"revisions"` // the newest first
}

// BaselineRevision is what a baseline stood for at a time.
type BaselineRevision struct {
	Number  int64     `json:"number"` // from 1
	Operand string    `json:"operand"`
	Runs    []string  `json:"runs"` // IDs, the oldest first
	Set     string    `json:"set,omitempty"`
	Owner   string    `json:"owner"`
	Reason  string    `json:"reason,omitempty"`
	Time    time.Time `json:"time"`
}

// Newest returns what the baseline stands for.
func (b Baseline) Newest() BaselineRevision { return b.Revisions[0] }

// SetBaseline makes a name stand for the runs of an operand that count. To set what it
// stands for already changes nothing. The error is *OperandError, *MissingError or
// *StateError.
func (a *Analyses) SetBaseline(ctx context.Context, in Scope, name, operand, reason, by string) (Baseline, error) {
	if err := checkName("name", name); err != nil {
		return Baseline{}, err
	}
	if len(reason) > maxReason {
		return Baseline{}, &OperandError{
			Field: "reason", Message: fmt.Sprintf("has %d bytes", len(reason)),
			Remedy: fmt.Sprintf("take at most %d", maxReason),
		}
	}
	s, err := a.resolve(ctx, "operand", operand, in)
	if err != nil {
		return Baseline{}, err
	}
	next := BaselineRevision{Operand: operand, Set: s.set, Owner: by, Reason: reason, Time: a.deps.Now().UTC().Round(0)}
	for _, r := range s.runs {
		if exclusion(r) == "" {
			next.Runs = append(next.Runs, r.ID)
		}
	}
	if len(next.Runs) == 0 {
		return Baseline{}, &StateError{Message: fmt.Sprintf("%s has no run that succeeded (name another)", operand)}
	}
	return store.Update(ctx, a.deps.Store, store.KindBaseline, baselineKey(in.Namespace, name),
		func(is Baseline, _ bool) (Baseline, bool, error) {
			is.Name, is.Namespace = name, in.Namespace
			changed := is.add(next)
			return is, changed, nil
		})
}

// Baseline returns a baseline. The error is *OperandError or *MissingError.
func (a *Analyses) Baseline(ctx context.Context, namespace, name string) (Baseline, error) {
	if err := checkName("name", name); err != nil {
		return Baseline{}, err
	}
	b, _, err := store.Get[Baseline](ctx, a.deps.Store, store.KindBaseline, baselineKey(namespace, name))
	if errors.Is(err, store.ErrNotFound) {
		err = &MissingError{Message: fmt.Sprintf("baseline %s of team %s does not exist (baictl baseline list)", name, namespace)}
	}
	return b, err
}

// Baselines returns up to n baselines of a team whose names are after a name, in their order.
func (a *Analyses) Baselines(ctx context.Context, namespace, after string, n int) ([]Baseline, error) {
	prefix := baselineKey(namespace, "")
	docs, err := a.deps.Store.Docs(ctx, store.KindBaseline, prefix+after, n)
	if err != nil {
		return nil, fmt.Errorf("list baselines: %w", err)
	}
	var all []Baseline
	for _, d := range docs {
		if !strings.HasPrefix(d.Key, prefix) {
			break
		}
		b, err := store.Decode[Baseline](d)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// DeleteBaseline removes a baseline, and reports whether it existed. The error is *OperandError
// for a text that is no name.
func (a *Analyses) DeleteBaseline(ctx context.Context, namespace, name string) (existed bool, err error) {
	_, err = a.Baseline(ctx, namespace, name)
	if missing := new(MissingError); errors.As(err, &missing) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, a.deps.Store.DeleteDoc(ctx, store.Doc{Kind: store.KindBaseline, Key: baselineKey(namespace, name)})
}

// baselineRuns returns the runs of a baseline that are still stored, and its set.
func (a *Analyses) baselineRuns(ctx context.Context, namespace, name string) (runs []store.Run, set string, err error) {
	b, err := a.Baseline(ctx, namespace, name)
	if err != nil {
		return nil, "", err
	}
	is := b.Newest()
	for _, id := range is.Runs {
		r, err := a.deps.Store.Run(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, "", fmt.Errorf("read run %s of baseline %s: %w", id, name, err)
		}
		runs = append(runs, r)
	}
	return runs, is.Set, nil
}

// baselineKey is the key of the document of a baseline. Names of teams have no "/".
func baselineKey(namespace, name string) string { return namespace + "/" + name }
