package download

import (
	"context"
	"errors"
	"sync"
	"syscall"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// progress is the progress of a download. Several goroutines may use it.
type progress struct {
	mu          sync.Mutex
	done, total int64  // total is -1 if unknown
	waitReason  string // empty while data arrive
}

func (p *progress) set(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done != p.done {
		p.waitReason = ""
	}
	p.done, p.total = done, total
}

func (p *progress) setWaitReason(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waitReason = dataset.Clip(why, dataset.MaxMessage/4)
}

func (p *progress) get() (done, total int64, waitReason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done, p.total, p.waitReason
}

// FreeSpace returns the space of an object store after a download ended with err
// because the store was full. The space is unknown (-1) after any other error, and if a
// quota was exceeded, since a quota is not the space of the disk.
func FreeSpace(ctx context.Context, objects dataset.Objects, log *zap.Logger, err error) store.Space {
	unknown := store.Space{Free: -1, Total: -1}
	if !IsNoSpace(err) || errors.Is(err, syscall.EDQUOT) {
		return unknown
	}
	s, err := objects.Space(ctx)
	if err != nil {
		log.Warn("cannot look for free space", zap.Error(err))
		return unknown
	}
	return s
}
