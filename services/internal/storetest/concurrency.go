package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// concurrency is how many use the store at once.
const concurrency = 16

func testConcurrency(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	t.Run("of many who create one document, one does", func(t *testing.T) {
		var created atomic.Int32
		must(t, concurrently(func() error {
			err := s.CreateDoc(ctx, doc("one", `{}`))
			if err == nil {
				created.Add(1)
			}
			return ignoreError(store.ErrExists, err)
		}))
		wantSame(t, 1, created.Load())
	})
	t.Run("many who count by compare-and-set miss nothing", func(t *testing.T) {
		const each = 8
		must(t, store.Create(ctx, s, kind, "count", 0))
		must(t, concurrently(func() error { return repeat(each, func(int) error { return increment(ctx, s, "count") }) }))
		n, _, err := store.Get[int](ctx, s, kind, "count")
		must(t, err)
		wantSame(t, concurrency*each, n)
	})
	t.Run("many who record changes of a run give it revisions without a gap, each event once", func(t *testing.T) {
		const each = 10 // events, which all of them record
		must(t, concurrently(func() error {
			return repeat(each, func(i int) error { return record(ctx, s, "busy", fmt.Sprint("e", i)) })
		}))
		var events []string
		changes, err := s.Changes(ctx, "busy", 0, 1000)
		must(t, err)
		for i, c := range changes {
			wantSame(t, int64(i+1), c.Revision)
			events = append(events, c.Event)
		}
		slices.Sort(events)
		wantSame(t, []string{"e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8", "e9"}, events)
		r, err := s.Run(ctx, "busy")
		must(t, err)
		wantSame(t, int64(each), r.Revision)
	})
	t.Run("many who bring the same lines and samples bring each once, and a reader beside them sees all in order", func(t *testing.T) {
		const rows, step = 90, 30
		o := NewOrigin("flow", "p")
		var all []store.Line
		for i := range rows {
			all = append(all, store.Line{Origin: o, Line: NewLine(int64(i), fmt.Sprint("line ", i))})
		}
		seen := make(chan []store.Line, 1)
		go func() { seen <- follow(ctx, s, rows) }()
		must(t, concurrently(func() error {
			return repeat(rows/step, func(i int) error {
				return errors.Join(s.AppendLines(ctx, lines(all[:(i+1)*step]...)),
					s.AppendSamples(ctx, []store.Samples{{Origin: o, Samples: []event.Sample{NewSample(int64(i), "v", 1)}}}))
			})
		}))
		wantSame(t, all, <-seen)
		eventually(t, "counted once", "1 90 89, 1 3 2, ", readStreams(ctx, s, "flow"))
	})
}

// concurrently runs do crowd times at once.
func concurrently(do func() error) error {
	var wg sync.WaitGroup
	errs := make([]error, concurrency)
	for i := range errs {
		wg.Go(func() { errs[i] = do() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// repeat runs do n times, until it fails.
func repeat(n int, do func(i int) error) error {
	for i := range n {
		if err := do(i); err != nil {
			return err
		}
	}
	return nil
}

// ignoreError returns err, or nil if err is the ignored error.
func ignoreError(ignored, err error) error {
	if errors.Is(err, ignored) {
		return nil
	}
	return err
}

// increment adds 1 to a document.
func increment(ctx context.Context, s Store, key string) error {
	for {
		n, version, err := store.Get[int](ctx, s, kind, key)
		if err != nil {
			return err
		}
		if _, err = store.Replace(ctx, s, kind, key, version, n+1); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// record records an event of a run, as its projector would.
func record(ctx context.Context, s Store, run, ev string) error {
	for {
		r, err := s.Run(ctx, run)
		if ignoreError(store.ErrNotFound, err) != nil {
			return err
		}
		err = s.PutRun(ctx, runAt(run, r.Revision+1), changeAt(run, r.Revision+1, ev))
		if !errors.Is(err, store.ErrConflict) {
			return ignoreError(store.ErrExists, err)
		}
	}
}

// follow reads lines as they are stored, until it has n or the time is over.
func follow(ctx context.Context, s Store, n int) (got []store.Line) {
	cursor := ""
	for end := time.Now().Add(3 * visibilityTimeout); len(got) < n && time.Now().Before(end); {
		page, next, err := s.Lines(ctx, store.LineQuery{Run: "flow"}, cursor, 7)
		if err != nil {
			return got
		}
		got, cursor = append(got, page...), next
	}
	return got
}
