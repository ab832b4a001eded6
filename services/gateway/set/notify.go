package set

import (
	"context"
	"fmt"

	"github.com/benchmark-ai/bai/services/analyst/notice"
)

// notify stores the notices of the end of a set. A finished set stays open for a while, so this is repeated after a crash; the notices have
// the same IDs. A set that was resumed ends again, and has further ones.
func (p pass) notify(ctx context.Context, s Set) error {
	if len(s.Notify) == 0 || p.receivers == nil || p.notified[s.ID] > s.Resumes {
		return nil
	}
	end := endOf(s)
	for _, name := range p.receivers(s.Namespace, s.Owner, s.Notify) {
		if err := notice.Enqueue(ctx, p.store, notice.NewEnd(name, end), p.now); err != nil {
			return fmt.Errorf("notify %s of the end of set %s: %w", name, s.ID, err)
		}
	}
	p.notified[s.ID] = s.Resumes + 1
	return nil
}
