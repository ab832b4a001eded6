package collect_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect"
)

// countingPublisher is a Publisher that counts events, and records the memory that was reachable at most.
type countingPublisher struct {
	lines, samples, cut int64
	most                uint64 // bytes
	ends                []event.End
}

// Publish implements collect.Publisher.
func (c *countingPublisher) Publish(_ context.Context, events ...event.Event) error {
	for _, ev := range events {
		switch ev := ev.(type) {
		case event.Logs:
			c.lines += int64(len(ev.Lines))
			for _, l := range ev.Lines {
				if l.Truncated {
					c.cut++
				}
			}
			if ev.End != nil {
				c.ends = append(c.ends, *ev.End)
			}
		case event.Metrics:
			c.samples += int64(len(ev.Samples))
		}
	}
	c.most = max(c.most, reachable(c.most))
	return nil
}

// reachable returns how much memory is reachable, where it seems to be more than most. Each
// collection also counts what other goroutines allocate meanwhile, which depends on the
// machine: of several the least is true.
func reachable(most uint64) uint64 {
	var m runtime.MemStats
	n := uint64(math.MaxUint64)
	for range 10 {
		runtime.GC()
		runtime.ReadMemStats(&m)
		if n = min(n, m.HeapAlloc); n <= most {
			break
		}
	}
	return n
}

func TestMemoryIsBoundedWhateverIsWritten(t *testing.T) {
	const mb = 1 << 20
	tests := map[string]struct {
		write      func(t *testing.T, v volume)
		lines, cut int64
	}{
		"lines, one of them of 10 MB": {lines: 104859, cut: 1, write: func(t *testing.T, v volume) {
			t.Helper()
			flood(t, v, 5*mb, strings.Repeat("x", 99)+"\n")
			flood(t, v, 10*mb, strings.Repeat("y", mb))
			v.record(t, stdoutRecord("\n"))
			flood(t, v, 5*mb, strings.Repeat("x", 99)+"\n")
		}},
		"a line that never ends": {lines: 1, cut: 1, write: func(t *testing.T, v volume) {
			t.Helper()
			flood(t, v, 20*mb, strings.Repeat("y", mb))
		}},
		"lines of nothing": {lines: mb, write: func(t *testing.T, v volume) {
			t.Helper()
			flood(t, v, mb, strings.Repeat("\n", mb))
		}},
		"lines that grow in JSON": {lines: 80, cut: 80, write: func(t *testing.T, v volume) {
			t.Helper()
			flood(t, v, 80*100000, strings.Repeat("\x01", 99999)+"\n")
		}},
		"a metric of every word": {lines: 4 * 1000, write: func(t *testing.T, v volume) {
			t.Helper()
			flood(t, v, 4*100000, strings.Repeat("n=1 ", 24)+"n=5\n")
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := newVolume(t)
			tt.write(t, v)
			v.append(t, pod.Metrics, strings.Repeat("{", 3*mb)+"\n"+`{"a": 1}`+"\n")
			v.exit(t, pod.Exit{})
			s := settings(v)
			s.Metrics = []pod.Metric{{Name: "n", Pattern: `n=(\d)`}}
			var c countingPublisher
			collectAll(t, s, &c)
			if c.lines != tt.lines || c.cut != tt.cut || len(c.ends) != 1 || c.ends[0].Count != tt.lines {
				t.Errorf("%d lines, %d cut, end %+v, want %d, %d", c.lines, c.cut, c.ends, tt.lines, tt.cut)
			}
			if c.most > 24*mb {
				t.Errorf("%d MB of memory in use, want 24 at most", c.most/mb)
			}
		})
	}
}

// flood writes size bytes of output, text again and again.
func flood(t *testing.T, v volume, size int, text string) {
	t.Helper()
	var all []pod.Record
	for n := 0; n < size; n += len(text) {
		for rest := text; rest != ""; {
			k := min(len(rest), pod.MaxRecord)
			all = append(all, stdoutRecord(rest[:k]))
			rest = rest[k:]
		}
		if len(all) > 1000 {
			v.record(t, all...)
			all = nil
		}
	}
	v.record(t, all...)
}

// BenchmarkCollect ships output and emitted lines to nowhere.
func BenchmarkCollect(b *testing.B) {
	const size = 64 << 20
	line := "2026-01-02 03:04:05,678 INFO worker-3 step 1200 of 90000 lr=0.001 grad_norm=1.25 and so on and on...\n"
	v := newVolume(b)
	var piece strings.Builder
	for piece.Len() < 32<<10 {
		piece.WriteString(line)
	}
	for n := 0; n < size; n += piece.Len() {
		v.record(b, stdoutRecord(piece.String()))
	}
	b.SetBytes(size)
	for b.Loop() {
		ctx, stop := context.WithCancel(b.Context())
		stop()
		s := settings(v)
		s.Header.Run = fmt.Sprint("r", time.Now().UnixNano()) // from the beginning
		if err := collector(b, s, encodingPublisher{}).Run(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// encodingPublisher is a Publisher that encodes.
type encodingPublisher struct{}

// Publish implements collect.Publisher.
func (encodingPublisher) Publish(_ context.Context, events ...event.Event) error {
	for _, ev := range events {
		if _, err := event.Encode(ev); err != nil {
			return err
		}
	}
	return nil
}

var _ collect.Publisher = encodingPublisher{}
