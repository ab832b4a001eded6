package watcher

import (
	"context"
	"errors"
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// logPause is the time between two looks whether a log is read.
const logPause = 200 * time.Millisecond

// awaitLogs returns when to look again where the end of an attempt is not to be
// said yet: once it is, its pods are deleted, and with them the logs that are all
// there is of what an image's own entrypoint wrote. It waits no longer than
// settings say.
func (w *watcher) awaitLogs(ctx context.Context, a attempt, s Sight) (again time.Time, err error) {
	for _, uid := range unwrapped(s) {
		_, err := w.deps.Store.Doc(ctx, store.KindFollowed, store.Followed(uid))
		if err == nil {
			continue
		}
		if !errors.Is(err, store.ErrNotFound) {
			return time.Time{}, wrap(err, "look whether the log of pod %s is read", uid)
		}
		if w.hold(a, s.Now).Add(w.settings.LogGrace).After(s.Now) {
			return s.Now.Add(logPause), nil
		}
	}
	return time.Time{}, nil
}

// hold returns since when the end of an attempt is held back.
func (w *watcher) hold(a attempt, now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, ok := w.known[a]
	if !ok {
		return now
	}
	if m.held.IsZero() {
		m.held = now
	}
	return m.held
}
