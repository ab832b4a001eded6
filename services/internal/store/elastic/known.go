package elastic

import "sync"

// most is how many sources are remembered.
const most = 1 << 16

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
	if k.ids == nil || len(k.ids) > most {
		k.ids = make(map[string]bool)
	}
	for _, id := range ids {
		k.ids[id] = true
	}
}
