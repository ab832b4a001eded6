// Package notifier wakes those who wait in one process for a run to be written to, for
// drivers of the store that hear of it nowhere else.
package notifier

import "sync"

// Notifier tells those who wait in this process that a run was written to. The zero
// value is ready.
type Notifier struct {
	mu      sync.Mutex
	waiters map[string]chan struct{} // by run; "" for any
}

// maxWaiters is how many runs are waited for one by one before all are woken.
const maxWaiters = 1024

// Subscribe returns the channel that the next change closes. It keeps one for each
// run that somebody ever waited for and that has not changed since; where these
// are too many, all are closed: who still waits comes back.
func (h *Notifier) Subscribe(run string) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, ok := h.waiters[run]
	if ok {
		return c
	}
	if len(h.waiters) >= maxWaiters {
		for _, c := range h.waiters {
			close(c)
		}
		clear(h.waiters)
	}
	if h.waiters == nil {
		h.waiters = make(map[string]chan struct{})
	}
	c = make(chan struct{})
	h.waiters[run] = c
	return c
}

// Notify wakes who waits for one of runs, or for any.
func (h *Notifier) Notify(runs ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, run := range append(runs, "") {
		if c, ok := h.waiters[run]; ok {
			close(c)
			delete(h.waiters, run)
		}
	}
}
