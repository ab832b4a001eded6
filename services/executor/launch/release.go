package launch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/executor/slots"
	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// retention is whether the objects of an attempt are retained.
type retention int

const (
	undecided retention = iota // its pods, or the outcome of its run, are waited for
	retained
	notRetained
)

// release is the state of the release of one attempt between two checks. A process that does not have it begins the release anew: every
// effect may be repeated. Only one worker at a time uses it.
type release struct {
	plan      *Plan
	nextCheck time.Time     // no check is due before
	wait      time.Duration // the pause before that check

	outcomeBy   time.Time // until when the outcome of the run is waited for
	terminateBy time.Time // until when the pods may end
	nextStop    time.Time // of the pods that are to be retained; zero before the first
	deleting    bool      // the objects are not retained
	nextDelete  time.Time
}

// releases has the attempts that are being released.
type releases struct {
	mu  sync.Mutex
	all map[slots.AttemptKey]*release
}

// of returns the release of an attempt, a new one if there is none.
func (r *releases) of(h slots.AttemptKey) *release {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = make(map[slots.AttemptKey]*release)
	}
	if r.all[h] == nil {
		r.all[h] = new(release)
	}
	return r.all[h]
}

// end removes the release of an attempt.
func (r *releases) end(h slots.AttemptKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, h)
}

// releaseSlot deletes the objects of an ended attempt. The slot is free once the objects are gone, or once they are retained and no pod of
// them runs. Until then releaseSlot has to be called again, after a pause that grows up to Poll: it never waits itself.
func (l *Launcher) releaseSlot(ctx context.Context, e slots.Allocation) (slots.Progress, error) {
	r, now := l.releases.of(e.AttemptKey), l.deps.Clock()
	if pause := r.nextCheck.Sub(now); pause > 0 { // a pass of the scheduler came earlier
		return slots.Progress{RetryAfter: pause}, nil
	}
	released, err := l.advanceRelease(ctx, e, r)
	if err != nil {
		return slots.Progress{}, err
	}
	if released {
		l.releases.end(e.AttemptKey)
		return slots.Progress{Transition: slots.Released}, nil
	}
	r.wait = min(max(2*r.wait, l.deletionDelay()), l.settings.Poll)
	r.nextCheck = l.deps.Clock().Add(r.wait)
	return slots.Progress{RetryAfter: r.wait}, nil
}

// advanceRelease takes a release one check further, and reports whether the slot is free.
func (l *Launcher) advanceRelease(ctx context.Context, e slots.Allocation, r *release) (released bool, err error) {
	if r.plan == nil {
		p, err := l.deps.Docs.Plan(ctx, e.AttemptKey)
		if err != nil {
			return false, err
		}
		if p == nil || p.NoLaunch { // nothing was created
			return true, nil
		}
		r.plan = p
	}
	if !r.deleting {
		is, err := l.retainObjects(ctx, e, r)
		if err != nil || is != notRetained {
			return is == retained, err
		}
		r.deleting, r.wait = true, 0
	}
	return l.deleteObjects(ctx, r)
}

// deleteObjects deletes the objects of an attempt, and reports whether they are gone. It deletes them again at intervals, since a lost node
// never reports that its pods have ended.
func (l *Launcher) deleteObjects(ctx context.Context, r *release) (gone bool, err error) {
	if now := l.deps.Clock(); !now.Before(r.nextDelete) {
		if err := l.deps.Cluster.Delete(ctx, r.plan.Ref()); err != nil {
			return false, fmt.Errorf("delete the objects of %s: %w", r.plan.Job, err)
		}
		r.nextDelete = now.Add(l.settings.Reconcile)
	}
	_, err = l.deps.Cluster.Observe(ctx, r.plan.Ref())
	if errors.Is(err, cluster.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look whether %s is gone: %w", r.plan.Job, err)
	}
	return false, nil
}
