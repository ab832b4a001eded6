package elastic

import "sync"

// hub tells those who wait in this process that a run was written to. The zero
// value is ready.
type hub struct {
	mu    sync.Mutex
	waits map[string]chan struct{} // by run; "" for any
}

// most is how many runs are waited for one by one before all are woken, and how
// many sources are remembered.
const most = 1024

// wait returns the channel that the next change closes. Where too many are kept
// all are closed: who still waits comes back.
func (h *hub) wait(run string) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c, ok := h.waits[run]; ok {
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
	c := make(chan struct{})
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

// Changed implements store.Notifier. What was written is seen by lists and
// searches after the next refresh, a moment later.
func (s *Store) Changed(run string) <-chan struct{} { return s.hub.wait(run) }

// known remembers which sources were written down by this process, so that each
// batch need not do so again. The zero value is ready.
type known struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (k *known) has(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ids[id]
}

func (k *known) add(ids []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ids == nil || len(k.ids) > 64*most {
		k.ids = make(map[string]bool)
	}
	for _, id := range ids {
		k.ids[id] = true
	}
}
