// Package notifier wakes waiting goroutines of one process when a run is written to, for drivers of the store without another source of
// changes.
package notifier

import "sync"

// Notifier notifies subscribers in this process that a run was written to. The zero value is ready.
type Notifier struct {
	mu      sync.Mutex
	waiters map[string]chan struct{} // by run; "" for any
}

// maxWaiters is how many runs are waited for one by one before all are woken.
const maxWaiters = 1024

// Subscribe returns the channel that the next change closes. The notifier has one channel for each run with a subscriber that has not
// changed since; if these are too many, it closes all, and waiting subscribers subscribe again.
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

// Notify wakes the subscribers of runs, and those of any run.
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
