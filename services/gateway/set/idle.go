package set

import (
	"context"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// advance brings one set forward, and reports whether it has more to do at once. Of an idle set it reads the active runs first, and goes on
// only if one of them has ended: a set whose runs go on needs no plan.
func (p pass) advance(ctx context.Context, id string) (more bool, err error) {
	s, found, err := p.docs.load(ctx, id)
	if err != nil {
		return false, err
	}
	if found && s.Fence <= p.lease.Fence && s.isIdle() {
		ended := p.endedRuns(ctx, s)
		if len(ended) == 0 {
			return false, nil
		}
		p.all, p.noted = false, ended
	}
	return p.reconcile(ctx, id, s, found)
}

// endedRuns returns the active runs of a set that have ended or cannot be read, as far as the pass reads them.
func (p pass) endedRuns(ctx context.Context, s Set) map[string]bool {
	ended := make(map[string]bool)
	for _, a := range s.Active {
		if !p.all && !p.noted[a.Run] {
			continue
		}
		run, err := p.store.Run(ctx, a.Run)
		if err != nil || run.Phase == event.PhaseFinished {
			ended[a.Run] = true
		}
	}
	return ended
}
