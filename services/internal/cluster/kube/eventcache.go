package kube

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Bounds of the event cache.
const (
	maxEventsPerObject = 50     // about one object: the oldest is dropped
	maxEvents          = 50_000 // no more are stored until some are deleted
)

// eventCache stores informative events by the object that they are about. It drops an event when the API server does. It is a
// cache.ReflectorStore.
type eventCache struct {
	onEvent func(*corev1.Event) // called without a lock

	mu       sync.RWMutex
	byObject map[types.UID][]*corev1.Event
	count    int
	listed   bool
}

func newEventCache(onEvent func(*corev1.Event)) *eventCache {
	return &eventCache{onEvent: onEvent, byObject: map[types.UID][]*corev1.Event{}}
}

func (b *eventCache) hasSynced() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.listed
}

// eventsFor returns the events about some objects, the oldest first.
func (b *eventCache) eventsFor(subjects []types.UID) []corev1.Event {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var all []corev1.Event
	for _, uid := range subjects {
		for _, e := range b.byObject[uid] {
			all = append(all, *e)
		}
	}
	return sortEvents(all)
}

// Add implements cache.ReflectorStore.
func (b *eventCache) Add(o any) error {
	e, ok := o.(*corev1.Event)
	if !ok || !isInformative(e) {
		return nil
	}
	b.mu.Lock()
	b.put(e)
	b.mu.Unlock()
	b.onEvent(e)
	return nil
}

// Update implements cache.ReflectorStore.
func (b *eventCache) Update(o any) error { return b.Add(o) }

// Delete implements cache.ReflectorStore.
func (b *eventCache) Delete(o any) error {
	if e, ok := o.(*corev1.Event); ok {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.remove(e)
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (b *eventCache) Replace(all []any, _ string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.byObject, b.count, b.listed = map[types.UID][]*corev1.Event{}, 0, true
	for _, o := range all {
		if e, ok := o.(*corev1.Event); ok && isInformative(e) {
			b.put(e)
		}
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (b *eventCache) Resync() error { return nil }

// put stores an event, in place of an earlier version of it.
func (b *eventCache) put(e *corev1.Event) {
	b.remove(e)
	if b.count >= maxEvents {
		return
	}
	page := b.byObject[e.InvolvedObject.UID]
	if len(page) >= maxEventsPerObject {
		page = append(page[:0:0], page[1:]...)
		b.count--
	}
	e.ManagedFields = nil
	b.byObject[e.InvolvedObject.UID] = append(page, e)
	b.count++
}

func (b *eventCache) remove(e *corev1.Event) {
	uid := e.InvolvedObject.UID
	page := b.byObject[uid]
	for i, old := range page {
		if old.Name != e.Name {
			continue
		}
		b.count--
		if len(page) == 1 {
			delete(b.byObject, uid)
			return
		}
		b.byObject[uid] = append(page[:i:i], page[i+1:]...)
		return
	}
}
