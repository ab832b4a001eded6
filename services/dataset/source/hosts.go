package source

import (
	"context"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/internal/control"
)

// hosts keeps what is asked of each host within its limits.
type hosts struct {
	maxRequests int   // requests at once
	rate        int64 // bytes a second; 0 is as many as come

	mu     sync.Mutex
	byName map[string]*host
}

// host is what goes on with one host.
type host struct {
	slots chan struct{} // holds one for each request
	refs  int           // that know it

	mu     sync.Mutex
	rate   int64
	freeAt time.Time // when the bytes that have come will have been due
}

// acquire returns the host of that name, until the caller leaves it.
func (h *hosts) acquire(name string) *host {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byName == nil {
		h.byName = make(map[string]*host)
	}
	one, ok := h.byName[name]
	if !ok {
		one = &host{slots: make(chan struct{}, h.maxRequests), rate: h.rate}
		h.byName[name] = one
	}
	one.refs++
	return one
}

// release says that the caller does no more with a host.
func (h *hosts) release(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one, ok := h.byName[name]; ok {
		if one.refs--; one.refs == 0 {
			delete(h.byName, name)
		}
	}
}

// acquire waits until one more request may be made. What it returns ends it.
func (h *host) acquire(ctx context.Context) (release func(), err error) {
	select {
	case h.slots <- struct{}{}:
		return sync.OnceFunc(func() { <-h.slots }), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// throttle waits so long that n bytes more keep the rate.
func (h *host) throttle(ctx context.Context, n int) error {
	if h.rate <= 0 || n <= 0 {
		return nil
	}
	if wait := h.reserve(n, time.Now()); wait > 0 && !control.Sleep(ctx, wait) {
		return ctx.Err()
	}
	return nil
}

// reserve notes that n bytes have come, and returns how long they came too early.
func (h *host) reserve(n int, now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.freeAt.Before(now) {
		h.freeAt = now
	}
	h.freeAt = h.freeAt.Add(time.Duration(float64(n) / float64(h.rate) * float64(time.Second)))
	return h.freeAt.Sub(now)
}
