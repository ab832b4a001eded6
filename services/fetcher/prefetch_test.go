package fetcher_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/fetcher"
	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

// newCache returns a cache, with a fetcher that fills it from a folder, and the deps of
// that fetcher.
func newCache(t *testing.T, folder string) (*dataset.Cache, dataset.Deps) {
	t.Helper()
	dir := t.TempDir()
	docs, err := sqlite.Open(t.Context(), filepath.Join(dir, "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = docs.Close() }) // it is not used any more
	objects, err := blob.Open(t.Context(), blob.Settings{URL: "file://" + dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = objects.Close() }) // it is not used any more
	s := dataset.Settings{PollInterval: 10 * time.Millisecond, Sources: source.Settings{Folders: []string{folder}}}
	deps := dataset.Deps{Store: docs, Objects: objects, Log: zap.NewNop()}
	stock, err := dataset.New(s, deps)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := fetcher.New(s, fetcher.Deps{Bus: eventtest.NewBus(t), Dataset: deps})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, part := range parts {
		running.Go(func() {
			if err := part(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { cancel(); running.Wait() })
	return stock, deps
}

func TestDataArePrefetchedListedVerifiedAndEvicted(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "cats"), "meow")
	s, deps := newCache(t, folder)
	fetched := prefetchAndWait(t, s, "file://"+folder+"/cats").Data[0]
	all, err := s.List(t.Context())
	if err != nil || len(all) != 1 || fetched.SHA256 != all[0].SHA256 || fetched.Size != 4 {
		t.Fatalf("prefetched %+v, listed %+v, %v", fetched, all, err)
	}
	if diff := cmp.Diff([]string{"file://" + folder + "/cats"}, all[0].Sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	read := int64(0)
	if whole, err := s.Verify(t.Context(), fetched.SHA256, func(done, _ int64) { read = done }); !whole || err != nil || read != 4 {
		t.Errorf("verified %t after %d bytes, %v", whole, read, err)
	}
	err = s.Evict(t.Context(), fetched.SHA256)
	if needed, ok := errors.AsType[*dataset.InUseError](err); !ok || needed.Message != "it is needed: it was used less than 5m0s ago" {
		t.Errorf("evict of what was just used: %v", err)
	}
	o, version, err := store.Get[store.Object](t.Context(), deps.Store, store.KindObject, fetched.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	o.LastUsed = time.Now().Add(-time.Hour)
	if _, err := store.Replace(t.Context(), deps.Store, store.KindObject, o.SHA256, version, o); err != nil {
		t.Fatal(err)
	}
	if err := s.Evict(t.Context(), fetched.SHA256); err != nil {
		t.Error(err)
	}
	if r, err := deps.Objects.Open(t.Context(), o.Key); !errors.Is(err, store.ErrNotFound) {
		_, _ = io.Copy(io.Discard, r)
		t.Errorf("the object is still there: %v", err)
	}
	if err := s.Evict(t.Context(), fetched.SHA256); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("evict of nothing: %v", err)
	}
}

func TestAPrefetchThatCannotBeSaysWhy(t *testing.T) {
	folder := t.TempDir()
	s, _ := newCache(t, folder)
	_, err := s.Prefetch(t.Context(), dataset.Source{URL: "file:///etc/passwd"})
	if refused, ok := errors.AsType[*source.Error](err); !ok || !strings.Contains(refused.Message, "/etc/passwd") {
		t.Errorf("prefetch: %v", err)
	}
	if got := prefetchAndWait(t, s, "file://"+folder+"/none"); got.Finished == nil || got.Finished.Reason != event.FetchFailed || !strings.Contains(got.Finished.Message, "none") {
		t.Errorf("prefetched %+v", got)
	}
	if _, _, err := s.PrefetchResult(t.Context(), "prefetch-none"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a prefetch of nobody's: %v", err)
	}
}

// prefetchAndWait prefetches a source, and waits for the outcome.
func prefetchAndWait(t *testing.T, s *dataset.Cache, url string) *dataset.Ending {
	t.Helper()
	name, err := s.Prefetch(t.Context(), dataset.Source{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		e, _, err := s.PrefetchResult(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if e != nil {
			return e
		}
	}
	t.Fatal("it does not end")
	return nil
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
