package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/broker"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect"
)

// span is how long samples are emitted at one rate.
const span = time.Minute

// slow is how long a sample may take until a query shows it, at the 99th
// percentile, for its rate to be held.
const slow = time.Second

// emitToVisible measures from the benchmark's write to the metrics file to the
// answer of a query, at 10,000 samples a second.
func emitToVisible(ctx context.Context, b bench) ([]result, error) {
	const rate = 10_000
	s, err := measureVisibility(ctx, b, rate, span)
	against := fmt.Sprintf("%d samples at %.0f/s for %s", s.sent, float64(s.sent)/span.Seconds(), span)
	return []result{
		atMost("EmitToVisibleP50", median(s.latencies), "ms", 250, against),
		atMost("EmitToVisibleP99", percentile(s.latencies, 0.99), "ms", ms(slow), against),
		atMost("EmitToVisibleLost", float64(s.lost()), "samples", 0, against),
		atMost("EmitToVisibleTwice", float64(s.duplicates), "samples", 0, against),
		atLeast("EmitToVisibleRate", float64(s.sent)/span.Seconds(), "samples/s", 0.99*rate, "what the benchmark emitted"),
	}, err
}

// highestRate looks for the most samples a second that can be emitted for a
// minute with none lost, none twice, and the 99th percentile visible in time. It
// goes up in steps, for a short time each, and holds the last that was good for
// the whole time, or as much less as it takes.
func highestRate(ctx context.Context, b bench) ([]result, error) {
	const short, up, down, from = 10 * time.Second, 1.5, 0.85, 20_000
	rate := from
	for {
		s, err := measureVisibility(ctx, b, int(up*float64(rate)), short)
		if err != nil {
			return nil, err
		}
		if !s.sustained(int(up*float64(rate)), short) {
			break
		}
		rate = int(up * float64(rate))
	}
	for ; rate > from/10; rate = int(down * float64(rate)) {
		s, err := measureVisibility(ctx, b, rate, span)
		if err != nil {
			return nil, err
		}
		if s.sustained(rate, span) {
			return []result{reported("EmitToVisibleHighest", float64(rate), "samples/s",
				fmt.Sprintf("held for %s, p50 %.0f ms, p99 %.0f ms, none lost, none twice", span, median(s.latencies),
					percentile(s.latencies, 0.99)))}, nil
		}
	}
	return []result{atLeast("EmitToVisibleHighest", 0, "samples/s", from/10, "no rate was held")}, nil
}

// visibility records when emitted samples became visible.
type visibility struct {
	sent       int
	latencies  []float64 // ms, of each sample once
	duplicates int
}

// lost is how many samples were emitted and are not stored.
func (s visibility) lost() int { return s.sent - len(s.latencies) }

// sustained reports whether so many samples a second were emitted and seen in time.
func (s visibility) sustained(rate int, span time.Duration) bool {
	return s.lost() == 0 && s.duplicates == 0 && percentile(s.latencies, 0.99) <= ms(slow) &&
		float64(s.sent) >= 0.99*float64(rate)*span.Seconds()
}

// measureVisibility emits samples for a while, and records when they become visible.
func measureVisibility(ctx context.Context, b bench, rate int, span time.Duration) (s visibility, err error) {
	self, err := os.Executable()
	if err != nil {
		return s, err
	}
	err = withPlatform(ctx, b, func(p *platform) error {
		run, err := p.submit(ctx, noop(fmt.Sprintf("%s -emit %d -for %s", self, rate, span)))
		if err != nil {
			return err
		}
		if err := p.watch(ctx, run, &s); err != nil {
			return err
		}
		lines, err := p.lines(ctx, run)
		if err != nil {
			return err
		}
		if _, err := fmt.Sscanf(strings.Join(lines, "\n"), sentLine, &s.sent); err != nil {
			return fmt.Errorf("the benchmark does not say how many samples it emitted, but %q: %w", lines, err)
		}
		return nil
	})
	return s, err
}

// watch queries the samples of a run until all are stored, and notes for each how many ms
// after the time in its value it was seen.
func (p *platform) watch(ctx context.Context, run string, s *visibility) error {
	done := make(chan error, 1)
	go func() { done <- p.awaitComplete(ctx, run) }()
	position := int64(-1) // in the file, of the last sample that was seen
	for cursor, last := "", false; !last; {
		select {
		case err := <-done:
			if err != nil {
				return err
			}
			last = true
		case <-time.After(5 * time.Millisecond):
		}
		seen, next, err := p.samples(ctx, run, cursor)
		if err != nil {
			return err
		}
		now := float64(time.Now().UnixNano())
		for _, v := range seen {
			if v.position <= position {
				s.duplicates++
				continue
			}
			position = v.position
			s.latencies = append(s.latencies, (now-v.value)/1e6)
		}
		cursor = next
	}
	return nil
}

// value is the visible part of a sample.
type value struct {
	value    float64
	position int64
}

// samples returns the samples after cursor.
func (p *platform) samples(ctx context.Context, run, cursor string) ([]value, string, error) {
	stream, err := p.api.QueryMetrics(ctx, &baiv1.QueryMetricsRequest{Run: run, Cursor: cursor, Metrics: []string{"t"}})
	if err != nil {
		return nil, cursor, err
	}
	var values []value
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return values, cursor, nil
		}
		if err != nil {
			return nil, cursor, err
		}
		cursor = r.GetCursor()
		for _, s := range r.GetSamples() {
			values = append(values, value{s.GetValue(), s.GetSequence()})
		}
	}
}

// samplesEndToEnd measures the rate of samples from a metrics file to the store, for a
// run that appends a file of them to it, and the rate of a bare producer and consumer
// with the same kind of broker and the very messages that the sidecar makes of such a
// file. Of alternating rounds, the best of each counts: other work on the machine
// disturbs the longer of the two more.
func samplesEndToEnd(ctx context.Context, b bench) ([]result, error) {
	const n, rounds = 3_000_000, 3
	messages, err := batches(ctx, n)
	if err != nil {
		return nil, err
	}
	var ours, bare float64
	for range rounds {
		rate, err := throughPlatform(ctx, b, n)
		if err != nil {
			return nil, err
		}
		ours = max(ours, rate)
		if rate, err = bareMessages(ctx, messages); err != nil {
			return nil, err
		}
		bare = max(bare, rate*n/float64(len(messages)))
	}
	against := fmt.Sprintf("%.0f samples/s end to end, %.0f/s by a bare producer and consumer, %d a message", ours, bare, n/len(messages))
	return []result{atLeast("SamplesOverBareKafka", ours/bare, "ratio", 0.25, against)}, nil
}

// throughPlatform returns how many of n samples a second go from a metrics file
// to the store.
func throughPlatform(ctx context.Context, b bench, n int) (rate float64, err error) {
	err = withPlatform(ctx, b, func(p *platform) error {
		file := filepath.Join(filepath.Dir(p.dir), "emitted")
		if err := writeSamplesFile(file, n); err != nil {
			return err
		}
		run, err := p.submit(ctx, noop(fmt.Sprintf("#!/bin/sh\ncat %s >> \"$BENCHMARK_AI_FILE\"\n", file)))
		if err != nil {
			return err
		}
		if err := p.awaitComplete(ctx, run); err != nil {
			return err
		}
		end := time.Now()
		r, err := p.api.GetRun(ctx, &baiv1.GetRunRequest{Run: run})
		if err != nil {
			return err
		}
		rate = float64(n) / end.Sub(r.GetRun().GetStartTime().AsTime()).Seconds()
		got, err := p.stored(ctx, run)
		if err == nil && got != n {
			err = fmt.Errorf("%d samples stored, want %d", got, n)
		}
		return err
	})
	return rate, err
}

// writeSamplesFile makes a file of samples as client libraries write them, with the time.
func writeSamplesFile(path string, n int) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	to := bufio.NewWriterSize(f, 1<<20)
	at := time.Now()
	for i := range n {
		now := at.Add(time.Duration(i) * time.Microsecond)
		if _, err := fmt.Fprintf(to, "{\"t\": %d, \"@time\": %d.%09d}\n", i, now.Unix(), now.Nanosecond()); err != nil {
			return err
		}
	}
	return to.Flush()
}

// stored returns how many samples of the benchmark's own a run has.
func (p *platform) stored(ctx context.Context, run string) (n int, err error) {
	for cursor := ""; ; {
		seen, next, err := p.samples(ctx, run, cursor)
		if err != nil || len(seen) == 0 {
			return n, err
		}
		n, cursor = n+len(seen), next
	}
}

// bareMessages moves messages by a bare producer and consumer, and returns how
// many a second.
func bareMessages(ctx context.Context, messages [][]byte) (rate float64, err error) {
	dir, err := os.MkdirTemp("", "bai-bench-broker-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	k, err := broker.Start(broker.Settings{Dir: dir}) //nolint:contextcheck // it ends with its closer
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	return moveMessages(ctx, k.Addr(), messages)
}

// batches returns n samples in the sidecar's own messages, made of a file that exists
// when it begins.
func batches(ctx context.Context, n int) (messages [][]byte, err error) {
	dir, err := os.MkdirTemp("", "bai-bench-pod-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		return nil, err
	}
	if err := errors.Join(writeSamplesFile(pod.PathIn(dir, pod.Metrics), n),
		os.WriteFile(pod.PathIn(dir, pod.ExitFile), []byte("{}"), 0o600)); err != nil {
		return nil, err
	}
	var sent recorder
	c, err := collect.New(collect.Settings{Dir: dir, Pod: "01234567-89ab-cdef-0123-456789abcdef", Collect: pod.Collect{
		Header: event.NewHeader("0123456789abcdef0123456789abcdef", "01kaaaaaaaaaaaaaaaaaaaaaaa", "default", "bench", time.Now()),
		Role:   "benchmark", Container: "benchmark",
	}}, &sent, zap.NewNop())
	if err != nil {
		return nil, err
	}
	if err := c.Run(ctx); err != nil {
		return nil, err
	}
	if sent.samples != n {
		return nil, fmt.Errorf("the sidecar sends %d samples, want %d", sent.samples, n)
	}
	return sent.messages, nil
}

// recorder stores the samples that it is to publish.
type recorder struct {
	mu       sync.Mutex
	messages [][]byte
	samples  int
}

// Publish implements collect.Publisher.
func (r *recorder) Publish(_ context.Context, evs ...event.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ev := range evs {
		m, ok := ev.(event.Metrics)
		if !ok || len(m.Samples) == 0 {
			continue
		}
		msg, err := event.Encode(m)
		if err != nil {
			return err
		}
		r.messages = append(r.messages, msg.Value)
		r.samples += len(m.Samples)
	}
	return nil
}
