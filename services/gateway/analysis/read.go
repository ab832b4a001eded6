package analysis

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

// readers is the number of reads of the store that one request makes at a time.
const readers = 16

// member is a run with its values.
type member struct {
	run      store.Run
	points   store.RunPoints
	excluded string // why it does not count, for people; empty if it does
}

// members reads the values of runs, of some metrics or, without any, of all. Those that do not
// count are among them.
func (a *Analyses) members(ctx context.Context, runs []store.Run, metrics []string) ([]member, error) {
	all := make([]member, len(runs))
	var counted []*member
	for i, r := range runs {
		all[i] = member{run: r, excluded: exclusion(r)}
		if all[i].excluded == "" {
			counted = append(counted, &all[i])
		}
	}
	var without []*member
	for page := range slices.Chunk(counted, pageRuns) {
		some, err := a.readPoints(ctx, page, metrics)
		if err != nil {
			return nil, err
		}
		without = append(without, some...)
	}
	return all, a.convert(ctx, without)
}

// notInHistory is why an import counts only where it is named.
const notInHistory = "it is an import that is no part of the history (baictl import --history makes it one)"

// historyMembers returns the members of a task's runs. Imports that are no part of its history do not count.
func (a *Analyses) historyMembers(ctx context.Context, runs []store.Run, metrics []string) ([]member, error) {
	all, err := a.members(ctx, runs, metrics)
	for i, m := range all {
		if m.excluded == "" && m.points.Excluded == store.ExcludedImport {
			all[i].excluded = notInHistory
		}
	}
	return all, err
}

// sideMembers returns the members of a side. What a user names counts wherever it ran.
func (a *Analyses) sideMembers(ctx context.Context, s side, metrics []string) ([]member, error) {
	if s.ofTask {
		return a.historyMembers(ctx, s.runs, metrics)
	}
	return a.members(ctx, s.runs, metrics)
}

// readPoints reads the stored points of members. It returns the members without.
func (a *Analyses) readPoints(ctx context.Context, all []*member, metrics []string) (without []*member, err error) {
	ids := make([]string, len(all))
	for i, m := range all {
		ids[i] = m.run.ID
	}
	stored, err := a.deps.Store.RunPoints(ctx, ids, metrics)
	if err != nil {
		return nil, fmt.Errorf("read the points of %d runs: %w", len(ids), err)
	}
	byRun := make(map[string]store.RunPoints, len(stored))
	for _, p := range stored {
		byRun[p.Run] = p
	}
	for _, m := range all {
		var found bool
		if m.points, found = byRun[m.run.ID]; !found {
			without = append(without, m)
		}
	}
	return without, nil
}

// convert makes the points of members whose points are not stored yet, or not visible yet: from
// their summaries.
func (a *Analyses) convert(ctx context.Context, all []*member) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for _, m := range all {
		g.Go(func() error { return a.convertOne(ctx, m) })
	}
	return g.Wait()
}

func (a *Analyses) convertOne(ctx context.Context, m *member) error {
	var results points.Results
	var err error
	if results.Summaries, m.excluded, err = a.summaries(ctx, m.run); err != nil || m.excluded != "" {
		return err
	}
	found, _, _, err := store.Find[store.RunEnvironment](ctx, a.deps.Store, store.KindEnvironment, m.run.ID)
	if err != nil {
		return fmt.Errorf("read the environment of run %s: %w", m.run.ID, err)
	}
	results.Environment = found.Attempt(m.run.Attempt)
	mark, _, imported, err := store.Find[importMark](ctx, a.deps.Store, store.KindImport, m.run.ID)
	if err != nil {
		return fmt.Errorf("look whether run %s is an import: %w", m.run.ID, err)
	}
	results.Imported = imported && !mark.History
	m.points = points.Of(m.run, results)
	return nil
}

// importMark is what is read of a document of KindImport.
type importMark struct {
	History bool `json:"history"` // the import asked for a place in the history
}

// exclusion returns why a run is no value of a comparison by itself, or "".
func exclusion(r store.Run) string {
	switch {
	case points.Counts(r):
		return ""
	case r.Warmup:
		return "it is a warm-up"
	case r.Outcome == "":
		return "it has not ended"
	default:
		return "it " + outcomeText(r)
	}
}

func outcomeText(r store.Run) string {
	if r.Reason != "" {
		return fmt.Sprintf("%s (%s)", r.Outcome, r.Reason)
	}
	return string(r.Outcome)
}

// summaries reads the summaries of a run; excluded says why there are none that may be used.
func (a *Analyses) summaries(ctx context.Context, r store.Run) (all *store.Summaries, excluded string, err error) {
	found, _, err := store.Get[store.Summaries](ctx, a.deps.Store, store.KindSummary, r.ID)
	if err == nil {
		return &found, "", nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, "", fmt.Errorf("read the summary of run %s: %w", r.ID, err)
	}
	streams, err := a.deps.Store.Streams(ctx, r.ID)
	if err != nil {
		return nil, "", fmt.Errorf("read the streams of run %s: %w", r.ID, err)
	}
	if c := store.Complete(r, streams); c.Complete && c.Samples == 0 {
		return nil, "", nil
	}
	return nil, "its samples are not summarised yet", nil
}
