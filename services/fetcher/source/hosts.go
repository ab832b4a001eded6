package source

import (
	"context"
	"sync"
	"time"
)

// hosts keeps what is asked of each host within its limits.
type hosts struct {
	most int   // requests at once
	rate int64 // bytes a second; 0 is as many as come

	mu sync.Mutex
	m  map[string]*host
}

// host is what goes on with one host.
type host struct {
	slots chan struct{} // holds one for each request
	users int           // that know it

	mu   sync.Mutex
	rate int64
	free time.Time // when the bytes that have come will have been due
}

// of returns the host of that name, until the caller leaves it.
func (h *hosts) of(name string) *host {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.m == nil {
		h.m = make(map[string]*host)
	}
	one, ok := h.m[name]
	if !ok {
		one = &host{slots: make(chan struct{}, h.most), rate: h.rate}
		h.m[name] = one
	}
	one.users++
	return one
}

// leave says that the caller does no more with a host.
func (h *hosts) leave(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one, ok := h.m[name]; ok {
		if one.users--; one.users == 0 {
			delete(h.m, name)
		}
	}
}

// enter waits until one more request may be made. What it returns ends it.
func (h *host) enter(ctx context.Context) (leave func(), err error) {
	select {
	case h.slots <- struct{}{}:
		return sync.OnceFunc(func() { <-h.slots }), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// came waits so long that n bytes more keep the rate.
func (h *host) came(ctx context.Context, n int) error {
	if h.rate <= 0 || n <= 0 {
		return nil
	}
	wait := h.due(n, time.Now())
	if wait <= 0 {
		return nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// due notes that n bytes have come, and returns how long they came too early.
func (h *host) due(n int, now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.free.Before(now) {
		h.free = now
	}
	h.free = h.free.Add(time.Duration(float64(n) / float64(h.rate) * float64(time.Second)))
	return h.free.Sub(now)
}
