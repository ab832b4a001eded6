package watcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// attempt is one attempt of a run.
type attempt struct {
	run    string
	number int
}

// Prefixes of the keys of documents: attempts whose end is not said yet, which
// are few, and how attempts ended, which stay. The former are listed.
const (
	livePrefix  = "live/"
	endedPrefix = "over/"
)

func (a attempt) key(prefix string) string { return fmt.Sprintf("%s%s/%d", prefix, a.run, a.number) }

// WatchedAttempt is the document of an attempt whose end is not said yet.
type WatchedAttempt struct {
	Launched event.Launched `json:"launched"`
}

func (w WatchedAttempt) ref() cluster.Ref {
	l := w.Launched
	return cluster.Ref{Run: l.Run, Attempt: l.Attempt, Scope: l.Scope, Job: l.Job, UID: l.UID}
}

// EndedAttempt is the document of how an attempt ended: whoever creates it decides,
// once and for all. One of the two is set.
type EndedAttempt struct {
	Finished *event.Finished `json:"finished,omitempty"`
	Retried  *event.Retried  `json:"retried,omitempty"`
}

func newEndedAttempt(events []event.Event) (e EndedAttempt) {
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

// events returns what says it, none of nil.
func (e *EndedAttempt) events() []event.Event {
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

// documents is where the watcher's documents lie.
type documents struct{ store Store }

// runState reports whether the run of an attempt is known, and whether it knows of
// the attempt's end.
func (d documents) runState(ctx context.Context, a attempt) (exists, ended bool, err error) {
	r, err := d.store.Run(ctx, a.run)
	if errors.Is(err, store.ErrNotFound) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("look how far run %s is: %w", a.run, err)
	}
	return true, r.Phase == event.PhaseFinished || r.Attempt > a.number, nil
}

// startWatch notes an attempt as one to be watched, unless it has ended already: then it
// returns how.
func (d documents) startWatch(ctx context.Context, l event.Launched) (*EndedAttempt, error) {
	a := attempt{l.Run, l.Attempt}
	ended, _, err := store.Get[EndedAttempt](ctx, d.store, store.KindWatch, a.key(endedPrefix))
	if err == nil {
		return &ended, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("look how %s ended: %w", a.key(""), err)
	}
	err = store.Create(ctx, d.store, store.KindWatch, a.key(livePrefix), WatchedAttempt{Launched: l})
	if errors.Is(err, store.ErrExists) {
		err = nil
	}
	return nil, wrapError(err, "watch %s", a.key(""))
}

// watchedAttempt returns the document of an attempt, nil where it is not watched.
func (d documents) watchedAttempt(ctx context.Context, a attempt) (*WatchedAttempt, error) {
	w, _, err := store.Get[WatchedAttempt](ctx, d.store, store.KindWatch, a.key(livePrefix))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look whether %s is watched: %w", a.key(""), err)
	}
	return &w, nil
}

// forEachWatched hands over every attempt that is watched.
func (d documents) forEachWatched(ctx context.Context, each func(WatchedAttempt)) error {
	const page = 100
	for after := livePrefix; ; {
		docs, err := d.store.Docs(ctx, store.KindWatch, after, page)
		if err != nil {
			return fmt.Errorf("look what is watched: %w", err)
		}
		for _, doc := range docs {
			if !strings.HasPrefix(doc.Key, livePrefix) {
				return nil
			}
			var w WatchedAttempt
			if err := json.Unmarshal(doc.Value, &w); err != nil {
				return fmt.Errorf("read %s: %w", doc.Key, err)
			}
			each(w)
			after = doc.Key
		}
		if len(docs) < page {
			return nil
		}
	}
}

// putEndIfAbsent writes down how an attempt ended, unless that is written down already,
// and returns what is.
func (d documents) putEndIfAbsent(ctx context.Context, a attempt, e EndedAttempt) (*EndedAttempt, error) {
	err := store.Create(ctx, d.store, store.KindWatch, a.key(endedPrefix), e)
	if !errors.Is(err, store.ErrExists) {
		return &e, wrapError(err, "keep how %s ended", a.key(""))
	}
	existing, _, err := store.Get[EndedAttempt](ctx, d.store, store.KindWatch, a.key(endedPrefix))
	return &existing, wrapError(err, "look how %s ended", a.key(""))
}

// endWatch ends the watch over an attempt.
func (d documents) endWatch(ctx context.Context, a attempt) error {
	err := d.store.DeleteDoc(ctx, store.Doc{Kind: store.KindWatch, Key: a.key(livePrefix)})
	return wrapError(err, "end the watch over %s", a.key(""))
}

// hasCancelMark reports whether a run has a cancel mark.
func (d documents) hasCancelMark(ctx context.Context, run string) (bool, error) {
	_, err := d.store.Doc(ctx, store.KindCancel, run)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, wrapError(err, "look for the cancel mark of %s", run)
}

// wrapError says what was being done when err happened, if it did.
func wrapError(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
