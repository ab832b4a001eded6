package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

func TestSeveralThatSyncAtATimeAllHaveTheirWritesOnTheDisk(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := s.CreateDoc(t.Context(), store.Doc{Kind: store.KindPlan, Key: fmt.Sprint(i), Value: []byte(`{}`)}); err != nil {
				t.Error(err)
			}
			if err := s.Sync(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	closeStore(t, s)
}

// TestDamageThatWasMetIsToldByEveryCheck: a store with one failed read cannot serve the next call either.
func TestDamageThatWasMetIsToldByEveryCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	for i := range 200 {
		if err := s.CreateDoc(t.Context(), store.Doc{Kind: store.KindPlan, Key: fmt.Sprint(i), Value: []byte(`{"text":"` + strings.Repeat("x", 400) + `"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	closeStore(t, s)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, info.Size()/4096*4096-40*4096), 40*4096); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	if err := s.Check(t.Context()); err != nil {
		t.Fatalf("Check before any read: %v", err)
	}
	if _, err := s.Docs(t.Context(), store.KindPlan, "", 1000); err == nil {
		t.Fatal("what is damaged could be read")
	}
	if err := s.Check(t.Context()); err == nil {
		t.Error("Check: nil, want the damage")
	}
	if err := s.Verify(t.Context()); err == nil {
		t.Error("Verify: nil, want the damage")
	}
}

// BenchmarkSync measures the cost of waiting for the disk: docs/decisions/0025.
func BenchmarkSync(b *testing.B) {
	for name, tt := range map[string]struct {
		sync   bool
		atOnce int
	}{"a commit": {false, 1}, "a commit and its flush": {true, 1}, "16 at a time, each with its flush": {true, 16}} {
		b.Run(name, func(b *testing.B) { benchmarkSync(b, tt.sync, tt.atOnce) })
	}
}

func benchmarkSync(b *testing.B, sync bool, atOnce int) {
	b.Helper()
	s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "store.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }() // the store is not used again
	var n atomic.Int64
	write := func() {
		err := s.CreateDoc(b.Context(), store.Doc{Kind: store.KindPlan, Key: fmt.Sprint(n.Add(1)), Value: []byte(`{}`)})
		if err == nil && sync {
			err = s.Sync(b.Context())
		}
		if err != nil {
			b.Error(err)
		}
	}
	if atOnce == 1 {
		for b.Loop() {
			write()
		}
		return
	}
	b.SetParallelism(atOnce)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			write()
		}
	})
}
