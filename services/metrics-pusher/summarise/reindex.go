package summarise

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const (
	reindexLease = "metrics-pusher/reindex"
	reindexTTL   = 30 * time.Second
	reindexKey   = "points" // of the document with the progress

	// A process waits before it begins: one of an earlier version, which stores no points, has ended by then.
	reindexDelay = time.Minute
	reindexPage  = 100 // runs between two writes of the progress

	// The pause after a page is a multiple of the time that the page took: other work goes first.
	reindexShare    = 4
	reindexPause    = 20 * time.Millisecond // shortest pause
	reindexPoll     = 10 * time.Second      // while another process does the work, and after a failure
	reindexDonePoll = time.Hour
)

// progress is the document of KindReindex.
type progress struct {
	Until time.Time `json:"until"`           // runs that were submitted before are looked at, the newest first
	Token string    `json:"token,omitempty"` // of the next page; empty before the first
	Runs  int64     `json:"runs"`            // that were looked at, without those that have their points already
	Done  bool      `json:"done,omitempty"`
}

// reindexer stores the points of the runs that were there before the store had points: once, page by page. One process at a time does the
// work, under a lease, and continues where another has ended.
type reindexer struct {
	pointStorer

	leader *control.Leader
	delay  time.Duration
	began  time.Time // when this process did
	now    func() time.Time
}

func newReindexer(d Deps) *reindexer {
	r := &reindexer{pointStorer: pointStorer{d.Store, d.Log}, delay: reindexDelay, began: d.Now(), now: d.Now}
	r.leader = control.NewLeader(d.Store, reindexLease, rand.Text(), reindexTTL, control.LeaderSettings{Now: d.Now, Log: d.Log})
	return r
}

// run does the work until ctx is done.
func (r *reindexer) run(ctx context.Context) error {
	if !control.Sleep(ctx, r.delay) {
		return nil
	}
	return control.NewLoop("reindex", reindexPoll, r.log, r.work, control.LoopSettings{
		Failing: "points of earlier runs cannot be stored now", Working: "points of earlier runs are stored again",
	}).Run(ctx)
}

// work does all of the work, unless it is done or another process does it.
func (r *reindexer) work(ctx context.Context) (time.Duration, error) {
	p, _, _, err := store.Find[progress](ctx, r.store, store.KindReindex, reindexKey)
	if err != nil || p.Done {
		return reindexDonePoll, err
	}
	err = r.leader.Do(ctx, func(ctx context.Context, _ int64) error { return r.pages(ctx) })
	if errors.Is(err, store.ErrHeld) || errors.Is(err, control.ErrLost) || errors.Is(err, store.ErrConflict) {
		return 0, nil // another process does it
	}
	return 0, err
}

// pages does page after page.
func (r *reindexer) pages(ctx context.Context) error {
	for {
		began := time.Now()
		done, err := r.page(ctx)
		if done || err != nil {
			return err
		}
		if !control.Sleep(ctx, max(reindexPause, reindexShare*time.Since(began))) {
			return ctx.Err()
		}
	}
}

// page does the next page, and then records it. It reports whether that was the last.
func (r *reindexer) page(ctx context.Context) (done bool, err error) {
	p, version, found, err := store.Find[progress](ctx, r.store, store.KindReindex, reindexKey)
	if err != nil || p.Done {
		return true, err
	}
	if !found {
		p.Until = r.now().UTC()
		version = 1
		if err := store.Create(ctx, r.store, store.KindReindex, reindexKey, p); err != nil {
			return false, asConflict(err)
		}
	}
	runs, next, err := r.earlierRuns(ctx, p)
	if err != nil {
		return false, err
	}
	for _, run := range runs {
		err := r.reindex(ctx, run)
		if damaged(err) {
			r.log.Error("a run has no points: its documents cannot be read", zap.String("run", run.ID), zap.Error(err))
			continue
		}
		if err != nil {
			return false, err
		}
	}
	p.Token, p.Runs, p.Done = next, p.Runs+int64(len(runs)), next == ""
	if _, err := store.Replace(ctx, r.store, store.KindReindex, reindexKey, version, p); err != nil {
		return false, err
	}
	if p.Done && p.Runs > 0 {
		r.log.Info("the points of earlier runs are stored", zap.Int64("runs", p.Runs))
	}
	return p.Done, nil
}

// earlierRuns returns the runs of the next page, and the token of the one after it.
func (r *reindexer) earlierRuns(ctx context.Context, p progress) (runs []store.Run, next string, err error) {
	finished := store.RunFilter{Phases: []event.Phase{event.PhaseFinished}, Until: p.Until}
	runs, next, err = r.store.Runs(ctx, finished, p.Token, reindexPage)
	if errors.Is(err, store.ErrCursor) { // the store is another one than before
		runs, next, err = r.store.Runs(ctx, finished, "", reindexPage)
	}
	if err != nil {
		return nil, "", fmt.Errorf("list runs: %w", err)
	}
	runs, err = r.withoutFresh(ctx, runs)
	return runs, next, err
}

// withoutFresh returns runs without those that have ended since this process began and have points: who hears of their ends stores
// these. One that has none ended under a process of an earlier version.
func (r *reindexer) withoutFresh(ctx context.Context, runs []store.Run) ([]store.Run, error) {
	var ids []string
	for _, run := range runs {
		if run.Ended != nil && run.Ended.After(r.began) {
			ids = append(ids, run.ID)
		}
	}
	if len(ids) == 0 {
		return runs, nil
	}
	have, err := r.store.RunPoints(ctx, ids, nil)
	if err != nil {
		return nil, fmt.Errorf("read the points of runs: %w", err)
	}
	return slices.DeleteFunc(runs, func(run store.Run) bool {
		return slices.ContainsFunc(have, func(p store.RunPoints) bool { return p.Run == run.ID })
	}), nil
}

// reindex stores the points of a run, unless its samples are still to be summarised: then they are stored with the summary.
func (r *reindexer) reindex(ctx context.Context, run store.Run) error {
	_, err := r.store.Doc(ctx, store.KindSummary, run.ID)
	if errors.Is(err, store.ErrNotFound) {
		streams, err := r.store.Streams(ctx, run.ID)
		if err != nil {
			return fmt.Errorf("read the streams of run %s: %w", run.ID, err)
		}
		if c := store.Complete(run, streams); !c.Complete || c.Samples > 0 {
			return nil
		}
	} else if err != nil {
		return fmt.Errorf("read the summary of run %s: %w", run.ID, err)
	}
	mark, _, imported, err := store.Find[importMark](ctx, r.store, store.KindImport, run.ID)
	if err != nil {
		return fmt.Errorf("look whether run %s is an import: %w", run.ID, err)
	}
	_, err = r.storePoints(ctx, run, imported && !mark.History) // runs of the past: nobody is to hear of them
	return err
}

// importMark is what is read of a document of KindImport.
type importMark struct {
	History bool `json:"history"` // the import asked for a place in the history
}

// damaged reports whether an error means that a document is not what it should be.
func damaged(err error) bool {
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	return syntax || kind
}

// asConflict turns ErrExists into ErrConflict: another process was faster.
func asConflict(err error) error {
	if errors.Is(err, store.ErrExists) {
		return store.ErrConflict
	}
	return err
}
