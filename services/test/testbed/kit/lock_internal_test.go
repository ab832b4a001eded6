package kit

import (
	"sync/atomic"
	"testing"
)

func TestAPartIsMadeWhileAnotherOneIs(t *testing.T) {
	dir, made := t.TempDir(), false
	err := locked(dir, "kubernetes", func() error {
		return locked(dir, "suite-fio", func() error {
			made = true
			return nil
		})
	})
	if err != nil || !made {
		t.Errorf("made %v, %v", made, err)
	}
}

func TestAPartIsMadeByOneAtATime(t *testing.T) {
	dir := t.TempDir()
	var makers atomic.Int32
	done := make(chan error)
	for range 8 {
		go func() {
			done <- locked(dir, "pause", func() error {
				if n := makers.Add(1); n != 1 {
					t.Errorf("%d make it", n)
				}
				makers.Add(-1)
				return nil
			})
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
