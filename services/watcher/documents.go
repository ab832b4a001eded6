package watcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/plan/always"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

// attempt is one attempt of a run.
type attempt struct {
	run    string
	number int
}

// Prefixes of the keys of documents: attempts whose end is not published yet, which are few, and ends of attempts, which stay. Only the
// former are listed.
const (
	livePrefix  = "live/"
	endedPrefix = "over/"
)

func (a attempt) key(prefix string) string { return fmt.Sprintf("%s%s/%d", prefix, a.run, a.number) }

// watchedAttempt is the document of an attempt whose end is not published yet.
type watchedAttempt struct {
	Launched event.Launched   `json:"launched"`
	NodeWait verdict.NodeWait `json:"node_wait,omitzero"`
	Outage   time.Time        `json:"outage,omitzero"` // since when its engine does not answer, as published; zero while it does
}

func (w watchedAttempt) ref() cluster.Ref {
	l := w.Launched
	return cluster.Ref{Run: l.Run, Attempt: l.Attempt, Scope: l.Scope, Job: l.Job, UID: l.UID}
}

// endedAttempt is the document of the end of an attempt: the process that creates it
// decides, once and for all. One of the two is set.
type endedAttempt struct {
	Finished *event.Finished `json:"finished,omitempty"`
	Retried  *event.Retried  `json:"retried,omitempty"`
}

func newEndedAttempt(events []event.Event) (e endedAttempt) {
	for _, ev := range events {
		switch ev := ev.(type) {
		case event.Finished:
			e.Finished = &ev
		case event.Retried:
			e.Retried = &ev
		}
	}
	return e
}

// events returns the event of the end, none for nil.
func (e *endedAttempt) events() []event.Event {
	switch {
	case e == nil:
		return nil
	case e.Finished != nil:
		return []event.Event{*e.Finished}
	case e.Retried != nil:
		return []event.Event{*e.Retried}
	}
	return nil
}

// documents reads and writes the watcher's documents.
type documents struct{ store Store }

// always returns the documents about steps at the end.
func (d documents) always() always.Documents { return always.Documents{Store: d.store} }

// updateNodeWait stores and returns the wait of an attempt for other runs. Waits is whether it waits now, and it lacks room since began.
// The replica that writes first decides since when the attempt waits.
func (d documents) updateNodeWait(ctx context.Context, a attempt, waits bool, began, now time.Time) (verdict.NodeWait, error) {
	key := a.key(livePrefix)
	for {
		doc, version, err := store.Get[watchedAttempt](ctx, d.store, store.KindWatch, key)
		if errors.Is(err, store.ErrNotFound) { // it has just ended
			return verdict.NodeWait{}, nil
		}
		if err != nil {
			return verdict.NodeWait{}, fmt.Errorf("look how long %s has waited: %w", a.key(""), err)
		}
		next := doc.NodeWait.Next(waits, began, now)
		if next == doc.NodeWait {
			return next, nil
		}
		doc.NodeWait = next
		_, err = store.Replace(ctx, d.store, store.KindWatch, key, version, doc)
		if err == nil {
			return next, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return verdict.NodeWait{}, fmt.Errorf("store how long %s has waited: %w", a.key(""), err)
		}
	}
}

// updateOutage stores and returns since when the engine of an attempt does not answer: zero if it does, or if the attempt has just ended.
// The replica that writes first decides about the time.
func (d documents) updateOutage(ctx context.Context, a attempt, away bool, now time.Time) (time.Time, error) {
	doc, err := store.Update(ctx, d.store, store.KindWatch, a.key(livePrefix),
		func(is watchedAttempt, found bool) (watchedAttempt, bool, error) {
			if !found || away != is.Outage.IsZero() {
				return is, false, nil
			}
			is.Outage = time.Time{}
			if away {
				is.Outage = now.UTC()
			}
			return is, true, nil
		})
	return doc.Outage, wrapError(err, "store since when the engine of %s does not answer", a.key(""))
}

// run returns the run of an attempt, the zero value if it is not stored.
func (d documents) run(ctx context.Context, a attempt) (store.Run, error) {
	r, err := d.store.Run(ctx, a.run)
	if errors.Is(err, store.ErrNotFound) {
		return store.Run{}, nil
	}
	return r, wrapError(err, "look how far run %s is", a.run)
}

// runState reports whether the run of an attempt is stored, and whether it shows the
// attempt's end.
func (d documents) runState(ctx context.Context, a attempt) (exists, ended bool, err error) {
	r, err := d.run(ctx, a)
	if err != nil || r.ID == "" {
		return false, false, err
	}
	return true, r.Phase == event.PhaseFinished || r.Attempt > a.number, nil
}

// endDecided reports whether the end of an attempt is stored, or shown by its run: it waits for nothing any more.
func (d documents) endDecided(ctx context.Context, a attempt) (bool, error) {
	_, _, found, err := store.Find[endedAttempt](ctx, d.store, store.KindWatch, a.key(endedPrefix))
	if err != nil || found {
		return found, wrapError(err, "look how %s ended", a.key(""))
	}
	_, ended, err := d.runState(ctx, a)
	return ended, err
}

// startWatch stores an attempt as one to be watched, unless it has ended already: then it
// returns the end.
func (d documents) startWatch(ctx context.Context, l event.Launched) (*endedAttempt, error) {
	a := attempt{l.Run, l.Attempt}
	ended, _, found, err := store.Find[endedAttempt](ctx, d.store, store.KindWatch, a.key(endedPrefix))
	if found {
		return &ended, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look how %s ended: %w", a.key(""), err)
	}
	err = store.Create(ctx, d.store, store.KindWatch, a.key(livePrefix), watchedAttempt{Launched: l})
	if errors.Is(err, store.ErrExists) {
		err = nil
	}
	return nil, wrapError(err, "watch %s", a.key(""))
}

// putEndIfAbsent stores the end of an attempt, unless one is stored already, and
// returns the stored one.
func (d documents) putEndIfAbsent(ctx context.Context, a attempt, e endedAttempt) (*endedAttempt, error) {
	err := store.Create(ctx, d.store, store.KindWatch, a.key(endedPrefix), e)
	if !errors.Is(err, store.ErrExists) {
		return &e, wrapError(err, "keep how %s ended", a.key(""))
	}
	existing, _, err := store.Get[endedAttempt](ctx, d.store, store.KindWatch, a.key(endedPrefix))
	return &existing, wrapError(err, "look how %s ended", a.key(""))
}

// endWatch ends the watch over an attempt.
func (d documents) endWatch(ctx context.Context, a attempt) error {
	err := d.store.DeleteDoc(ctx, store.Doc{Kind: store.KindWatch, Key: a.key(livePrefix)})
	return wrapError(err, "end the watch over %s", a.key(""))
}

// wrapError adds the action that failed to err, if there is one.
func wrapError(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
