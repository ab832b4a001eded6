package analyst

import (
	"context"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/internal/control"
)

// pacer has the analyses of one analyst work for a share of the time. The pause is before the next analysis, so that the notices of a
// single one do not wait.
type pacer struct {
	share float64 // over 0 and at most 1

	mu   sync.Mutex
	next time.Time // when the next analysis may begin
}

// wait waits until an analysis may begin, and reports whether ctx is still open.
func (p *pacer) wait(ctx context.Context) bool {
	p.mu.Lock()
	pause := time.Until(p.next)
	p.mu.Unlock()
	return control.Sleep(ctx, pause)
}

// worked notes an analysis that began at a time and has just ended.
func (p *pacer) worked(begin time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.next = now.Add(pauseAfter(now.Sub(begin), p.share))
}
