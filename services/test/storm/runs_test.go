package storm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// pollInterval is how often the store is queried for a run.
const pollInterval = 500 * time.Millisecond

// isUnavailable says that the platform cannot answer now, and may later.
func isUnavailable(err error) bool {
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded
}

// countingRun is a run that counts, and its stored data.
type countingRun struct {
	w    *harness
	id   string
	n    int  // how far
	pipe bool // it emits through the FIFO

	samples, lines atomic.Int64 // seen so far
	done           chan struct{}

	mu        sync.Mutex
	piped     map[int]int // how often each number that went through the FIFO was seen
	cursors   [2]string   // cursors
	violation error       // the first violation of the promise
}

// descriptor is that of a run that counts.
func (w *harness) descriptor(n, rate int, pipe bool, data string) string {
	self, err := os.Executable()
	if err != nil {
		w.t.Error(err)
	}
	how := map[bool]string{true: "1"}[pipe]
	text := fmt.Sprintf(`spec_version = "0.1.0"
[info]
description = "counts"
[hardware]
instance_type = "t3.small"
[env]
docker_image = "debian:12-slim"
vars = { %s = "%d", %s = "%d", %s = %q }
[limits]
retries = 3
[ml]
benchmark_code = %q
`, envCount, n, envRate, rate, envPipe, how, self)
	if data != "" {
		text += fmt.Sprintf("[[data.sources]]\nsrc = %q\npath = \"/bai/data/set\"\n", w.data+data)
	}
	return text
}

// submit retries a submission with one key until the platform has accepted the run, and
// returns the run as it is followed. It is nil if the platform refused.
func (w *harness) submit(key, descriptor string, n int, pipe bool) *countingRun {
	w.t.Helper()
	c := &countingRun{w: w, n: n, pipe: pipe, done: make(chan struct{}), piped: map[int]int{}}
	if !w.retry("submit", func(ctx context.Context) error {
		r, err := w.api.SubmitRun(ctx, &baiv1.SubmitRunRequest{IdempotencyKey: key, DescriptorToml: []byte(descriptor), Owner: "tester"})
		c.id = r.GetRunId()
		return err
	}) {
		return nil
	}
	go c.follow()
	return c
}

// follow reads the run's data, by cursor, until the platform reports that they are
// complete, and then none may be missing.
func (c *countingRun) follow() {
	defer close(c.done)
	for c.w.t.Context().Err() == nil {
		var complete bool
		if !c.w.retry("get "+c.id, func(ctx context.Context) error {
			r, err := c.w.api.GetRun(ctx, &baiv1.GetRunRequest{Run: c.id})
			complete = r.GetRun().GetCompleteness().GetComplete()
			return err
		}) {
			return
		}
		for _, read := range []func(context.Context) error{c.readSamples, c.readLines} {
			if !c.w.retry("read "+c.id, read) {
				return
			}
		}
		if err := c.violationError(complete); err != nil {
			c.w.t.Errorf("run %s: %v", c.id, err)
			return
		}
		if complete {
			return
		}
		time.Sleep(pollInterval)
	}
}

// violationError returns a violation of the promise in the data read so far.
func (c *countingRun) violationError(complete bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.violation != nil || !complete {
		return c.violation
	}
	if n := int(c.lines.Load()); n != c.n {
		return fmt.Errorf("it is called complete with %d of %d lines", n, c.n)
	}
	if n := int(c.samples.Load()); n != c.n && !c.pipe {
		return fmt.Errorf("it is called complete with %d of %d samples", n, c.n)
	}
	return nil
}

// readSamples reads the samples that are new.
func (c *countingRun) readSamples(ctx context.Context) error {
	return readNew(func() (grpc.ServerStreamingClient[baiv1.QueryMetricsResponse], error) {
		return c.w.api.QueryMetrics(ctx, &baiv1.QueryMetricsRequest{Run: c.id, Cursor: c.cursor(0), Metrics: []string{"n", "f"}})
	}, c.recordSamples)
}

// readNew reads streams to their ends, until one has nothing new. The function record
// reports whether a message has.
func readNew[T any](open func() (grpc.ServerStreamingClient[T], error), record func(*T) bool) error {
	for {
		stream, err := open()
		if err != nil {
			return err
		}
		some := false
		r, err := stream.Recv()
		for ; err == nil; r, err = stream.Recv() {
			some = record(r) || some
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
		if !some {
			return nil
		}
	}
}

// recordSamples notes samples, and reports whether there are any.
func (c *countingRun) recordSamples(r *baiv1.QueryMetricsResponse) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cursors[0] = r.GetCursor()
	for _, s := range r.GetSamples() {
		if c.pipe {
			c.piped[int(s.GetValue())]++
			c.samples.Add(1)
			continue
		}
		if next := c.samples.Add(1); int64(s.GetValue()) != next && c.violation == nil {
			c.violation = fmt.Errorf("sample %v where %d is next", s.GetValue(), next)
		}
	}
	return len(r.GetSamples()) > 0
}

// readLines reads the lines that are new.
func (c *countingRun) readLines(ctx context.Context) error {
	return readNew(func() (grpc.ServerStreamingClient[baiv1.StreamLogsResponse], error) {
		return c.w.api.StreamLogs(ctx, &baiv1.StreamLogsRequest{Run: c.id, Cursor: c.cursor(1)})
	}, c.recordLines)
}

func (c *countingRun) cursor(i int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cursors[i]
}

// recordLines notes lines, and reports whether there are any.
func (c *countingRun) recordLines(r *baiv1.StreamLogsResponse) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cursors[1] = r.GetCursor()
	for _, l := range r.GetLines() {
		next := c.lines.Add(1)
		if want := fmt.Sprintf("n=%d", next); l.GetText() != want && c.violation == nil {
			c.violation = fmt.Errorf("line %q where %q is next", l.GetText(), want)
		}
	}
	return len(r.GetLines()) > 0
}

// isDone reports whether all was read.
func (c *countingRun) isDone() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// unread returns the run as nothing was read of it yet.
func (c *countingRun) unread() *countingRun {
	return &countingRun{w: c.w, id: c.id, n: c.n, pipe: c.pipe, piped: map[int]int{}}
}
