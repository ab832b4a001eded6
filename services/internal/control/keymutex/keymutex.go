// Package keymutex excludes goroutines from each other by key.
package keymutex

import (
	"context"
	"sync"
)

// Mutex is a lock for each key, held by one goroutine at a time. Its zero value is ready.
type Mutex struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed by the unlock of its key
}

// Lock waits for the key, and returns the function that unlocks it, which is called once. It returns only the error of ctx.
func (m *Mutex) Lock(ctx context.Context, key string) (unlock func(), err error) {
	for {
		held := m.tryLock(key)
		if held == nil {
			return func() { m.unlock(key) }, nil
		}
		select {
		case <-held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Hold is Lock without a way to give up: its caller waits as long as the holder works.
func (m *Mutex) Hold(key string) (unlock func()) {
	for held := m.tryLock(key); held != nil; held = m.tryLock(key) {
		<-held
	}
	return func() { m.unlock(key) }
}

// tryLock locks the key, or returns the channel that its unlock closes.
func (m *Mutex) tryLock(key string) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if held, ok := m.held[key]; ok {
		return held
	}
	if m.held == nil {
		m.held = make(map[string]chan struct{})
	}
	m.held[key] = make(chan struct{})
	return nil
}

func (m *Mutex) unlock(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.held[key])
	delete(m.held, key)
}
