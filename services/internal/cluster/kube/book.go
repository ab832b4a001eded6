package kube

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Bounds of what is kept of events.
const (
	eventsOfOne = 50     // about one object: then the oldest goes
	eventsOfAll = 50_000 // then no more are kept until some have gone
)

// book keeps the events that tell something, by what they are about. The API
// server forgets them after a while, and then so does the book. It is a
// cache.ReflectorStore.
type book struct {
	heard func(*corev1.Event) // called without a lock

	mu    sync.RWMutex
	pages map[types.UID][]*corev1.Event
	count int
	begun bool
}

func newBook(heard func(*corev1.Event)) *book {
	return &book{heard: heard, pages: map[types.UID][]*corev1.Event{}}
}

func (b *book) synced() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.begun
}

// of returns the events about some objects, the oldest first.
func (b *book) of(subjects []types.UID) []corev1.Event {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var all []corev1.Event
	for _, uid := range subjects {
		for _, e := range b.pages[uid] {
			all = append(all, *e)
		}
	}
	return inOrder(all)
}

// Add implements cache.ReflectorStore.
func (b *book) Add(o any) error {
	e, ok := o.(*corev1.Event)
	if !ok || !telling(e) {
		return nil
	}
	b.mu.Lock()
	b.put(e)
	b.mu.Unlock()
	b.heard(e)
	return nil
}

// Update implements cache.ReflectorStore.
func (b *book) Update(o any) error { return b.Add(o) }

// Delete implements cache.ReflectorStore.
func (b *book) Delete(o any) error {
	if e, ok := o.(*corev1.Event); ok {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.drop(e)
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (b *book) Replace(all []any, _ string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pages, b.count, b.begun = map[types.UID][]*corev1.Event{}, 0, true
	for _, o := range all {
		if e, ok := o.(*corev1.Event); ok && telling(e) {
			b.put(e)
		}
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (b *book) Resync() error { return nil }

// put writes an event down, in place of what was known of it before.
func (b *book) put(e *corev1.Event) {
	b.drop(e)
	if b.count >= eventsOfAll {
		return
	}
	page := b.pages[e.InvolvedObject.UID]
	if len(page) >= eventsOfOne {
		page = append(page[:0:0], page[1:]...)
		b.count--
	}
	e.ManagedFields = nil
	b.pages[e.InvolvedObject.UID] = append(page, e)
	b.count++
}

func (b *book) drop(e *corev1.Event) {
	uid := e.InvolvedObject.UID
	page := b.pages[uid]
	for i, was := range page {
		if was.Name != e.Name {
			continue
		}
		b.count--
		if len(page) == 1 {
			delete(b.pages, uid)
			return
		}
		b.pages[uid] = append(page[:i:i], page[i+1:]...)
		return
	}
}
