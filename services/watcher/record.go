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
	live = "live/"
	over = "over/"
)

func (a attempt) key(prefix string) string { return fmt.Sprintf("%s%s/%d", prefix, a.run, a.number) }

// Watched is the document of an attempt whose end is not said yet.
type Watched struct {
	Launched event.Launched `json:"launched"`
}

func (w Watched) ref() cluster.Ref {
	l := w.Launched
	return cluster.Ref{Run: l.Run, Attempt: l.Attempt, Scope: l.Scope, Job: l.Job, UID: l.UID}
}

// Ended is the document of how an attempt ended: whoever creates it decides,
// once and for all. One of the two is set.
type Ended struct {
	Finished *event.Finished `json:"finished,omitempty"`
	Retried  *event.Retried  `json:"retried,omitempty"`
}

func endedBy(say []event.Event) (e Ended) {
	for _, ev := range say {
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
func (e *Ended) events() []event.Event {
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

// desk is where the watcher's documents lie.
type desk struct{ store Store }

// recorded reports whether the run of an attempt is known, and whether it knows of
// the attempt's end.
func (d desk) recorded(ctx context.Context, a attempt) (known, over bool, err error) {
	r, err := d.store.Run(ctx, a.run)
	if errors.Is(err, store.ErrNotFound) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("look how far run %s is: %w", a.run, err)
	}
	return true, r.Phase == event.PhaseFinished || r.Attempt > a.number, nil
}

// open notes an attempt as one to be watched, unless it has ended already: then it
// returns how.
func (d desk) open(ctx context.Context, l event.Launched) (*Ended, error) {
	a := attempt{l.Run, l.Attempt}
	was, _, err := store.Get[Ended](ctx, d.store, store.KindWatch, a.key(over))
	if err == nil {
		return &was, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("look how %s ended: %w", a.key(""), err)
	}
	err = store.Create(ctx, d.store, store.KindWatch, a.key(live), Watched{Launched: l})
	if errors.Is(err, store.ErrExists) {
		err = nil
	}
	return nil, wrap(err, "watch %s", a.key(""))
}

// watched returns the document of an attempt, nil where it is not watched.
func (d desk) watched(ctx context.Context, a attempt) (*Watched, error) {
	w, _, err := store.Get[Watched](ctx, d.store, store.KindWatch, a.key(live))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look whether %s is watched: %w", a.key(""), err)
	}
	return &w, nil
}

// all hands over every attempt that is watched.
func (d desk) all(ctx context.Context, each func(Watched)) error {
	const page = 100
	for after := live; ; {
		docs, err := d.store.Docs(ctx, store.KindWatch, after, page)
		if err != nil {
			return fmt.Errorf("look what is watched: %w", err)
		}
		for _, doc := range docs {
			if !strings.HasPrefix(doc.Key, live) {
				return nil
			}
			var w Watched
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

// settle writes down how an attempt ended, unless that is written down already,
// and returns what is.
func (d desk) settle(ctx context.Context, a attempt, e Ended) (*Ended, error) {
	err := store.Create(ctx, d.store, store.KindWatch, a.key(over), e)
	if !errors.Is(err, store.ErrExists) {
		return &e, wrap(err, "keep how %s ended", a.key(""))
	}
	was, _, err := store.Get[Ended](ctx, d.store, store.KindWatch, a.key(over))
	return &was, wrap(err, "look how %s ended", a.key(""))
}

// close ends the watch over an attempt.
func (d desk) close(ctx context.Context, a attempt) error {
	err := d.store.DeleteDoc(ctx, store.Doc{Kind: store.KindWatch, Key: a.key(live)})
	return wrap(err, "end the watch over %s", a.key(""))
}

// canceled reports whether a run has a cancel mark.
func (d desk) canceled(ctx context.Context, run string) (bool, error) {
	_, err := d.store.Doc(ctx, store.KindCancel, run)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, wrap(err, "look for the cancel mark of %s", run)
}

// wrap says what was being done when err happened, if it did.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
