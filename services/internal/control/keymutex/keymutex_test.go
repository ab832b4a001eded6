package keymutex_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchmark-ai/bai/services/internal/control/keymutex"
)

func TestOneGoroutineAtATimeHoldsAKeyAndOthersHoldOtherKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m keymutex.Mutex
		var all sync.WaitGroup
		start, holders := time.Now(), map[string]*int{"a": new(int), "b": new(int)}
		for i := range 10 {
			key := [...]string{"a", "b"}[i%2]
			all.Go(func() {
				unlock, err := m.Lock(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				defer unlock()
				if *holders[key]++; *holders[key] != 1 {
					t.Errorf("%d hold key %s", *holders[key], key)
				}
				time.Sleep(time.Second)
				*holders[key]--
			})
		}
		all.Wait()
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("two keys of five goroutines took %s, want 5s", took)
		}
	})
}

func TestAGoroutineThatWaitsForAKeyGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m keymutex.Mutex
		unlock, err := m.Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Lock(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it says %v, want %v", err, context.DeadlineExceeded)
		}
		unlock()
		if _, err := m.Lock(ctx, "a"); err != nil {
			t.Errorf("a free key says %v", err)
		}
	})
}

func TestHoldWaitsForTheUnlockOfItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m keymutex.Mutex
		unlock := m.Hold("a")
		start := time.Now()
		time.AfterFunc(time.Second, unlock)
		m.Hold("a")()
		if took := time.Since(start); took != time.Second {
			t.Errorf("the key was held for %s, want 1s", took)
		}
	})
}
