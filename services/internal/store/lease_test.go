package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// memoryDocs is a store of documents that lasts as long as the test.
type memoryDocs struct {
	mu sync.Mutex
	m  map[string]store.Doc
}

func newMemoryDocs() *memoryDocs { return &memoryDocs{m: make(map[string]store.Doc)} }

func (d *memoryDocs) CreateDoc(_ context.Context, doc store.Doc) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.m[doc.Key]; ok {
		return store.ErrExists
	}
	doc.Version = 1
	d.m[doc.Key] = doc
	return nil
}

func (d *memoryDocs) Doc(_ context.Context, _ store.Kind, key string) (store.Doc, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	doc, ok := d.m[key]
	if !ok {
		return doc, store.ErrNotFound
	}
	return doc, nil
}

func (d *memoryDocs) ReplaceDoc(_ context.Context, doc store.Doc) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.m[doc.Key].Version != doc.Version {
		return 0, store.ErrConflict
	}
	doc.Version++
	d.m[doc.Key] = doc
	return doc.Version, nil
}

func (d *memoryDocs) DeleteDoc(context.Context, store.Doc) error {
	return errors.New("a lease is never deleted")
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestALeaseHasOneHolderUntilItEnds(t *testing.T) {
	d := newMemoryDocs()
	a := acquire(t, d, "a", noon)
	if _, err := store.Acquire(t.Context(), d, "admit", "b", noon.Add(59*time.Second), time.Minute); !errors.Is(err, store.ErrHeld) {
		t.Errorf("while a holds it b gets %v, want %v", err, store.ErrHeld)
	}
	b := acquire(t, d, "b", noon.Add(time.Minute))
	if b.Fence != a.Fence+1 {
		t.Errorf("fence %d after %d, want the next", b.Fence, a.Fence)
	}
}

func TestARenewalKeepsTheFence(t *testing.T) {
	d := newMemoryDocs()
	a := acquire(t, d, "a", noon)
	again := acquire(t, d, "a", noon.Add(30*time.Second))
	if again.Fence != a.Fence || !again.ExpiresAt.Equal(noon.Add(90*time.Second)) {
		t.Errorf("renewed as %+v, want fence %d until %s", again, a.Fence, noon.Add(90*time.Second))
	}
}

func TestAReleasedLeaseCanBeTakenAtOnceAndTheFenceGrows(t *testing.T) {
	d := newMemoryDocs()
	a := acquire(t, d, "a", noon)
	if err := store.Release(t.Context(), d, a); err != nil {
		t.Fatal(err)
	}
	if b := acquire(t, d, "b", noon); b.Fence != a.Fence+1 {
		t.Errorf("fence %d after %d, want the next", b.Fence, a.Fence)
	}
}

func TestAReleaseThatComesLateTakesNothingFromTheNextHolder(t *testing.T) {
	d := newMemoryDocs()
	a := acquire(t, d, "a", noon)
	acquire(t, d, "b", noon.Add(2*time.Minute))
	if err := store.Release(t.Context(), d, a); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Acquire(t.Context(), d, "admit", "c", noon.Add(2*time.Minute), time.Minute); !errors.Is(err, store.ErrHeld) {
		t.Errorf("after a late release c gets %v, want %v", err, store.ErrHeld)
	}
}

func TestOfManyWhoAskAtOnceOneGetsIt(t *testing.T) {
	d := newMemoryDocs()
	var wg sync.WaitGroup
	got := make(chan string, 20)
	for _, holder := range "abcdefghijklmnopqrst" {
		wg.Go(func() {
			if _, err := store.Acquire(t.Context(), d, "admit", string(holder), noon, time.Minute); err == nil {
				got <- string(holder)
			} else if !errors.Is(err, store.ErrHeld) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(got) != 1 {
		t.Errorf("%d got the lease, want one", len(got))
	}
}

func acquire(t *testing.T, d store.Docs, holder string, now time.Time) store.Lease {
	t.Helper()
	l, err := store.Acquire(t.Context(), d, "admit", holder, now, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
