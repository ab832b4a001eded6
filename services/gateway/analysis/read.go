package analysis

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/benchmark-ai/bai/services/gateway/series"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// readers is the number of reads of the store that one request makes at a time.
const readers = 16

// member is a run with its results and its environment.
type member struct {
	run         store.Run
	summaries   *store.Summaries // nil if the run has no samples
	environment []store.PodEnvironment
	excluded    string // why it does not count, for people; empty if it does
}

// members reads the results of runs. Those that do not count are among them.
func (a *Analyses) members(ctx context.Context, runs []store.Run) ([]member, error) {
	all := make([]member, len(runs))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for i, r := range runs {
		g.Go(func() (err error) {
			all[i], err = a.member(gctx, r)
			return err
		})
	}
	return all, g.Wait()
}

// member reads the results of a run.
func (a *Analyses) member(ctx context.Context, r store.Run) (member, error) {
	m := member{run: r, excluded: exclusion(r)}
	if m.excluded != "" {
		return m, nil
	}
	var err error
	if m.summaries, m.excluded, err = a.summaries(ctx, r); err != nil || m.excluded != "" {
		return m, err
	}
	found, _, _, err := store.Find[store.RunEnvironment](ctx, a.deps.Store, store.KindEnvironment, r.ID)
	if err != nil {
		return m, fmt.Errorf("read the environment of run %s: %w", r.ID, err)
	}
	m.environment = found.Attempt(r.Attempt)
	for i := range m.environment {
		m.environment[i].Image = r.Images[m.environment[i].Origin.Pod]
	}
	return m, nil
}

// exclusion returns why a run is no value of a comparison by itself, or "".
func exclusion(r store.Run) string {
	switch {
	case series.Counts(r):
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
