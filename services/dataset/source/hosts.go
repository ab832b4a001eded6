package source

import (
	"context"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/internal/control"
)

// hosts enforces the limits of requests to each host.
type hosts struct {
	maxRequests int   // maximum number of concurrent requests
	rate        int64 // bytes per second; 0 means no limit

	mu     sync.Mutex
	byName map[string]*host
}

// host is the state of one host.
type host struct {
	slots chan struct{} // one element for each request
	refs  int           // number of users

	mu     sync.Mutex
	rate   int64
	freeAt time.Time // time at which the received bytes are within the rate
}

// acquire returns the host with that name. The caller must release it.
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

// release ends the use of a host.
func (h *hosts) release(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one, ok := h.byName[name]; ok {
		if one.refs--; one.refs == 0 {
			delete(h.byName, name)
		}
	}
}

// acquire waits until another request may be made. The caller calls release after the
// request.
func (h *host) acquire(ctx context.Context) (release func(), err error) {
	select {
	case h.slots <- struct{}{}:
		return sync.OnceFunc(func() { <-h.slots }), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// throttle waits until n more bytes are within the rate.
func (h *host) throttle(ctx context.Context, n int) error {
	if h.rate <= 0 || n <= 0 {
		return nil
	}
	if wait := h.reserve(n, time.Now()); wait > 0 && !control.Sleep(ctx, wait) {
		return ctx.Err()
	}
	return nil
}

// reserve records n received bytes, and returns how long to wait for the rate.
func (h *host) reserve(n int, now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.freeAt.Before(now) {
		h.freeAt = now
	}
	h.freeAt = h.freeAt.Add(time.Duration(float64(n) / float64(h.rate) * float64(time.Second)))
	return h.freeAt.Sub(now)
}
