package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Backfill is past firings whose runs are to be made: the document KindBackfill.
type Backfill struct {
	Schedule string    `json:"schedule"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Next     time.Time `json:"next"` // those before it are done
	By       string    `json:"by,omitempty"`
	At       time.Time `json:"at"`

	key     string
	version int64
}

// lookupWorkers are how many look for runs at a time, for one request.
const lookupWorkers = 8

func backfillKey(id string, from, to time.Time) string {
	return fmt.Sprintf("%s!%s!%s", id, FiringKey(from), FiringKey(to))
}

// backfills returns the backfills of a schedule, or of all, oldest span first.
func (k *Schedules) backfills(ctx context.Context, id string) ([]Backfill, error) {
	var docs []store.Doc
	var err error
	if id != "" {
		docs, err = k.docsOf(ctx, store.KindBackfill, id)
	} else {
		docs, err = k.store.Docs(ctx, store.KindBackfill, "", page) // others come when these are done
	}
	if err != nil {
		return nil, fmt.Errorf("list backfills: %w", err)
	}
	all := make([]Backfill, len(docs))
	for i, d := range docs {
		if err := json.Unmarshal(d.Value, &all[i]); err != nil {
			return nil, fmt.Errorf("read backfill %q: %w", d.Key, err)
		}
		all[i].key, all[i].version = d.Key, d.Version
	}
	return all, nil
}

// advanceBackfill makes some of the runs that an order wants.
func (f *reconciler) advanceBackfill(ctx context.Context, o Backfill) error {
	n := DecideBackfill(f.schedule.Rules, f.countActive())
	if n == 0 {
		return nil
	}
	all, more := f.state.Times.Between(o.Next, o.To, backfillBatch)
	missing, err := f.missingRuns(ctx, f.schedule.ID, all, n+1)
	if err != nil {
		return err
	}
	now := missing[:min(n, len(missing))]
	for _, at := range now {
		run, refused, err := f.submitAt(ctx, at)
		if err != nil {
			return err
		}
		r := Record{Time: at, Run: run, Open: true, Reported: true}
		if refused != "" {
			r = Record{Time: at, Count: 1, Reason: Refused, Message: refused}
		}
		f.addRecord(r)
	}
	next := o.To
	switch {
	case len(now) < len(missing):
		next = missing[len(now)]
	case more:
		next = all[len(all)-1].Add(time.Second)
	}
	return f.saveProgress(ctx, o, next)
}

// countActive is how many runs go on, with those that were just made.
func (f *reconciler) countActive() int {
	n := len(f.state.Active)
	for _, r := range f.firings.Records {
		if r.Open && !slices.ContainsFunc(f.state.Active, func(g ActiveRun) bool { return g.Run == r.Run }) {
			n++
		}
	}
	return n
}

// missingRuns returns the first n of some times of a schedule that have no run.
func (k *Schedules) missingRuns(ctx context.Context, id string, all []time.Time, n int) (missing []time.Time, err error) {
	for _, at := range all {
		if len(missing) == n {
			return missing, nil
		}
		_, err := k.submitter.RunOfFiring(ctx, id, FiringKey(at))
		if errors.Is(err, store.ErrNotFound) {
			missing = append(missing, at)
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	return missing, nil
}

// allMissingRuns returns all of many times of a schedule that have no run. It looks for
// some at once: whoever asked waits.
func (k *Schedules) allMissingRuns(ctx context.Context, id string, all []time.Time) ([]time.Time, error) {
	parts := slices.Collect(slices.Chunk(all, backfillBatch))
	missing := make([][]time.Time, len(parts))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(lookupWorkers)
	for i, part := range parts {
		g.Go(func() (err error) {
			missing[i], err = k.missingRuns(gctx, id, part, len(part))
			return err
		})
	}
	err := g.Wait()
	return slices.Concat(missing...), err
}

// saveProgress says that all of an order before a time is done.
func (f *reconciler) saveProgress(ctx context.Context, o Backfill, next time.Time) error {
	if next.Equal(o.Next) {
		return nil
	}
	if !next.Before(o.To) {
		return f.store.DeleteDoc(ctx, store.Doc{Kind: store.KindBackfill, Key: o.key})
	}
	o.Next = next
	_, err := store.Replace(ctx, f.store, store.KindBackfill, o.key, o.version, o)
	if errors.Is(err, store.ErrConflict) {
		return nil // another process did it
	}
	return err
}

// Backfill orders the runs of past firings that have none, from one time on until
// before another, zero or later meaning now, and returns their times and the number
// of firings that have a run. It may be repeated. The error is *MissingError, or
// *SpanError where the span is empty or has too many firings.
func (k *Schedules) Backfill(ctx context.Context, owner, ref string, from, to time.Time, by string) (missing []time.Time, present int, err error) {
	now := k.now().UTC().Round(0)
	if to.IsZero() || to.After(now) {
		to = now
	}
	s, err := k.Find(ctx, owner, ref)
	if err != nil {
		return nil, 0, err
	}
	all, err := s.Rules.firings(from, to)
	if err != nil {
		return nil, 0, err
	}
	missing, err = k.allMissingRuns(ctx, s.ID, all)
	if err != nil || len(missing) == 0 {
		return nil, len(all), err
	}
	o := Backfill{Schedule: s.ID, From: from, To: to, Next: missing[0], By: by, At: now}
	err = store.Create(ctx, k.store, store.KindBackfill, backfillKey(s.ID, from, to), o)
	if errors.Is(err, store.ErrExists) { // it was ordered, and is under way
		err = nil
	}
	k.wakeUp()
	return missing, len(all) - len(missing), err
}
