package launch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/executor/slots"
	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// outageError is the error of a call that the cluster did not answer.
type outageError struct{ error }

// Unwrap returns the error of the call.
func (e *outageError) Unwrap() error { return e.error }

// asOutage marks the error of a call of the cluster, unless it is an answer.
func asOutage(err error) error {
	if _, refused := errors.AsType[*cluster.RefusedError](err); refused || err == nil {
		return err
	}
	return &outageError{err}
}

// outageInterval is the time between two reports of an attempt about the same outage.
const outageInterval = time.Minute

// outages has the attempts whose launch waits for the cluster's answer.
type outages struct {
	mu       sync.Mutex
	reported map[slots.AttemptKey]time.Time // when an attempt last reported that
}

// due reports whether an attempt has to report an outage now, and records that it does.
func (o *outages) due(h slots.AttemptKey, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if last, ok := o.reported[h]; ok && now.Before(last.Add(outageInterval)) {
		return false
	}
	if o.reported == nil {
		o.reported = make(map[slots.AttemptKey]time.Time)
	}
	o.reported[h] = now
	return true
}

// end records that the cluster has answered an attempt.
func (o *outages) end(h slots.AttemptKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.reported, h)
}

// reportOutage publishes that a launch waits because the cluster does not answer, if that
// is what failed.
func (l *Launcher) reportOutage(ctx context.Context, p Plan, failure error) error {
	outage, ok := errors.AsType[*outageError](failure)
	now := l.deps.Clock()
	if !ok || ctx.Err() != nil || !l.outages.due(slots.AttemptKey{Run: p.Run.Run, Attempt: p.Run.Attempt}, now) {
		return nil //nolint:nilerr // failure is what may be reported
	}
	return l.deps.Publish(ctx, outageStatus(p.Run.Header, l.planner.Engine, outage.error, now))
}
