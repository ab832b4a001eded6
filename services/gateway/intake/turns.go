package intake

import (
	"context"
	"sync"
)

// turns lets one goroutine at a time do something about a key.
type turns struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the key is given back
}

// take waits for the turn at key, and returns the function that gives it back.
// Its only error is ctx's.
func (t *turns) take(ctx context.Context, key string) (func(), error) {
	for {
		held := t.try(key)
		if held == nil {
			return func() { t.give(key) }, nil
		}
		select {
		case <-held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// try takes key, or returns what to wait for.
func (t *turns) try(key string) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if held, ok := t.held[key]; ok {
		return held
	}
	if t.held == nil {
		t.held = make(map[string]chan struct{})
	}
	t.held[key] = make(chan struct{})
	return nil
}

func (t *turns) give(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.held[key])
	delete(t.held, key)
}
