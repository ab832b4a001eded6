package sqlite

import "sync"

// hub tells those who wait in this process that a run was written to. The zero
// value is ready.
type hub struct {
	mu    sync.Mutex
	waits map[string]chan struct{} // by run; "" for any
}

// most is how many runs are waited for one by one before all are woken.
const most = 1024

// wait returns the channel that the next change closes. It keeps one for each
// run that somebody ever waited for and that has not changed since; where these
// are too many, all are closed: who still waits comes back.
func (h *hub) wait(run string) <-chan struct{} {
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

// changed wakes who waits for one of runs, or for any.
func (h *hub) changed(runs ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, run := range append(runs, "") {
		if c, ok := h.waits[run]; ok {
			close(c)
			delete(h.waits, run)
		}
	}
}

// Changed implements store.Notifier.
func (s *Store) Changed(run string) <-chan struct{} { return s.hub.wait(run) }
