// Package hub wakes those who wait in one process for a run to be written to, for
// drivers of the store that hear of it nowhere else.
package hub

import "sync"

// Hub tells those who wait in this process that a run was written to. The zero
// value is ready.
type Hub struct {
	mu    sync.Mutex
	waits map[string]chan struct{} // by run; "" for any
}

// most is how many runs are waited for one by one before all are woken.
const most = 1024

// Wait returns the channel that the next change closes. It keeps one for each
// run that somebody ever waited for and that has not changed since; where these
// are too many, all are closed: who still waits comes back.
func (h *Hub) Wait(run string) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, ok := h.waits[run]
	if ok {
		return c
	}
	if len(h.waits) >= most {
		for _, c := range h.waits {
			close(c)
		}
		clear(h.waits)
	}
	if h.waits == nil {
		h.waits = make(map[string]chan struct{})
	}
	c = make(chan struct{})
	h.waits[run] = c
	return c
}

// Changed wakes who waits for one of runs, or for any.
func (h *Hub) Changed(runs ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, run := range append(runs, "") {
		if c, ok := h.waits[run]; ok {
			close(c)
			delete(h.waits, run)
		}
	}
}
