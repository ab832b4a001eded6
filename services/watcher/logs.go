package watcher

import (
	"context"
	"errors"
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

// logPollInterval is the time between two checks whether a log is read to its end.
const logPollInterval = 200 * time.Millisecond

// awaitLogs returns when to decide again if the end of an attempt must not be published yet: after that its pods are deleted, and with them
// the logs, which are the only output of an image's own entrypoint. It waits for at most the time in settings.
func (w *watcher) awaitLogs(ctx context.Context, m *tracked, s verdict.Observation) (recheckAt time.Time, err error) {
	for _, uid := range verdict.Unwrapped(s) {
		_, err := w.deps.Store.Doc(ctx, store.KindLogProgress, store.LogShippedKey(uid))
		if err == nil {
			continue
		}
		if !errors.Is(err, store.ErrNotFound) {
			return time.Time{}, wrapError(err, "look whether the log of pod %s is read", uid)
		}
		if m.heldSince.IsZero() {
			m.heldSince = s.Now
		}
		if m.heldSince.Add(w.settings.LogGrace).After(s.Now) {
			return s.Now.Add(logPollInterval), nil
		}
	}
	return time.Time{}, nil
}
