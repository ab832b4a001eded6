package watcher

import (
	"context"
	"errors"
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// logPollInterval is the time between two looks whether a log is read.
const logPollInterval = 200 * time.Millisecond

// awaitLogs returns when to look again where the end of an attempt is not to be
// said yet: once it is, its pods are deleted, and with them the logs that are all
// there is of what an image's own entrypoint wrote. It waits no longer than
// settings say.
func (w *watcher) awaitLogs(ctx context.Context, a attempt, s Observation) (recheckAt time.Time, err error) {
	for _, uid := range unwrapped(s) {
		_, err := w.deps.Store.Doc(ctx, store.KindLogProgress, store.LogShippedKey(uid))
		if err == nil {
			continue
		}
		if !errors.Is(err, store.ErrNotFound) {
			return time.Time{}, wrapError(err, "look whether the log of pod %s is read", uid)
		}
		if w.holdEnd(a, s.Now).Add(w.settings.LogGrace).After(s.Now) {
			return s.Now.Add(logPollInterval), nil
		}
	}
	return time.Time{}, nil
}

// holdEnd returns since when the end of an attempt is held back.
func (w *watcher) holdEnd(a attempt, now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, ok := w.attempts[a]
	if !ok {
		return now
	}
	if m.heldSince.IsZero() {
		m.heldSince = now
	}
	return m.heldSince
}
