package elastic_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
)

// testFollow has two processes store the same lines of several sources, one behind the other as after a rebalance, into an index of several
// shards, in small requests, while a reader follows them.
func testFollow(t *testing.T, server *elasticsearch.Server) {
	t.Helper()
	const sources, lines = 4, 1500
	set := elastic.Settings{Prefix: newPrefix(t, server), Shards: 3, BulkBytes: 8 << 10, Refresh: 15 * time.Millisecond}
	var wg sync.WaitGroup
	for behind := range 2 {
		s := open(t, server, set)
		wg.Go(func() {
			if err := appendOverlapping(t.Context(), s, sources, lines, 100*behind); err != nil {
				t.Error(err)
			}
		})
	}
	next, cursor, total := make(map[string]int64), "", 0
	reader := open(t, server, set)
	eventually(t, "all lines in order", func() (bool, error) {
		page, at, err := reader.Lines(t.Context(), store.LineQuery{Run: "r"}, cursor, 100)
		if err != nil {
			return false, err
		}
		for _, l := range page {
			if l.Seq != next[l.Origin.Pod] {
				t.Fatalf("source %s: line %d after %d", l.Origin.Pod, l.Seq, next[l.Origin.Pod]-1)
			}
			next[l.Origin.Pod]++
		}
		cursor, total = at, total+len(page)
		return total == sources*lines, nil
	})
	wg.Wait()
}

// appendOverlapping stores lines of several sources, in pieces that begin again with the end
// of those before.
func appendOverlapping(ctx context.Context, s *elastic.Store, sources, lines, overlap int) error {
	for from := 0; from < lines; {
		to := min(from+1+rand.IntN(150), lines)
		var batches []store.Lines
		for p := range sources {
			b := store.Lines{Origin: storetest.NewOrigin("r", fmt.Sprint("p", p))}
			for i := max(0, from-overlap); i < to; i++ {
				b.Lines = append(b.Lines, storetest.NewLine(int64(i), fmt.Sprint("line ", i)))
			}
			batches = append(batches, b)
		}
		if err := s.AppendLines(ctx, batches); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// testCrash kills a server twice while lines are written.
func testCrash(t *testing.T) {
	t.Helper()
	t.Parallel()
	server := elasticsearch.Own(t)
	s := open(t, server, elastic.Settings{})
	setUp(t, s)
	ctx, stop := context.WithCancel(t.Context())
	var acknowledged atomic.Int64
	done := make(chan error, 1)
	go func() { done <- appendUntilDone(ctx, s, &acknowledged) }()
	for n := range int64(2) {
		eventually(t, "lines that are stored", func() (bool, error) { return acknowledged.Load() >= (n+1)*5000, nil })
		server.Kill(t)
		server.Restart(t)
	}
	before := acknowledged.Load()
	eventually(t, "the writer goes on", func() (bool, error) { return acknowledged.Load() > before, nil })
	stop()
	check(t, <-done)
	var got store.Stream
	eventually(t, "a whole log", func() (bool, error) {
		streams, err := s.Streams(t.Context(), "r")
		if len(streams) > 0 {
			got = streams[0]
		}
		return got.Stored >= acknowledged.Load(), err
	})
	if got.Stored != got.Last+1 {
		t.Errorf("%d lines stored, the last is %d: want each once, none missing", got.Stored, got.Last)
	}
	t.Logf("%d lines acknowledged, %d stored", acknowledged.Load(), got.Stored)
}

// appendUntilDone stores numbered lines until ctx is done, each batch again until it is acknowledged.
func appendUntilDone(ctx context.Context, s *elastic.Store, acknowledged *atomic.Int64) error {
	for ctx.Err() == nil {
		b := store.Lines{Origin: storetest.NewOrigin("r", "p")}
		for i := range int64(200) {
			b.Lines = append(b.Lines, storetest.NewLine(acknowledged.Load()+i, "x"))
		}
		err := s.AppendLines(context.WithoutCancel(ctx), []store.Lines{b})
		switch {
		case err == nil:
			acknowledged.Add(200)
		case errors.Is(err, store.ErrRefused):
			return fmt.Errorf("a server that is away refuses: %w", err)
		default:
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil
}
