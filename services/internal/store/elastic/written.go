package elastic

import "sync"

// maxWritten is how many sources are remembered.
const maxWritten = 1 << 16

// writtenStreams are the sources whose documents this process has written, so that it does not write them with each batch. The zero value
// is ready.
type writtenStreams struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (k *writtenStreams) has(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ids[id]
}

func (k *writtenStreams) add(ids []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ids == nil || len(k.ids) > maxWritten {
		k.ids = make(map[string]bool)
	}
	for _, id := range ids {
		k.ids[id] = true
	}
}
