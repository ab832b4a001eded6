package submit

import (
	"context"
	"sync"
)

// keyMutex lets one goroutine at a time do something about a key.
type keyMutex struct {
	mu     sync.Mutex
	locked map[string]chan struct{} // closed when the key is given back
}

// lock waits for the turn at key, and returns the function that gives it back.
// Its only error is ctx's.
func (t *keyMutex) lock(ctx context.Context, key string) (func(), error) {
	for {
		released := t.tryLock(key)
		if released == nil {
			return func() { t.unlock(key) }, nil
		}
		select {
		case <-released:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tryLock takes key, or returns what to wait for.
func (t *keyMutex) tryLock(key string) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if released, ok := t.locked[key]; ok {
		return released
	}
	if t.locked == nil {
		t.locked = make(map[string]chan struct{})
	}
	t.locked[key] = make(chan struct{})
	return nil
}

func (t *keyMutex) unlock(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.locked[key])
	delete(t.locked, key)
}
