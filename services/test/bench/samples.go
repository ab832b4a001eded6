package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/broker"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// emitToVisible measures from the benchmark's write to the metrics file to the
// answer of a query, at 10,000 samples a second.
func emitToVisible(ctx context.Context, b bench) ([]result, error) {
	const rate, span = 10_000, 20 * time.Second
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var latencies []float64
	err = with(ctx, b, func(p *platform) error {
		run, err := p.submit(ctx, noop(fmt.Sprintf("%s -emit %d -for %s", self, rate, span)))
		if err != nil {
			return err
		}
		latencies, err = p.watch(ctx, run)
		return err
	})
	if want := int(rate * span.Seconds() * 0.99); err == nil && len(latencies) < want {
		err = fmt.Errorf("%d samples seen, want at least %d", len(latencies), want)
	}
	against := fmt.Sprintf("%d samples at %d/s", len(latencies), rate)
	return []result{
		most("EmitToVisibleP50", median(latencies), "ms", 250, against),
		most("EmitToVisibleP99", percentile(latencies, 0.99), "ms", 1000, against),
	}, err
}

// watch queries the samples of a run until all are there, and returns for each
// how many ms after the time that is its value it was seen.
func (p *platform) watch(ctx context.Context, run string) (latencies []float64, err error) {
	over := make(chan error, 1)
	go func() { over <- p.complete(ctx, run) }()
	for cursor, last := "", false; !last; {
		select {
		case err := <-over:
			if err != nil {
				return nil, err
			}
			last = true
		case <-time.After(5 * time.Millisecond):
		}
		seen, next, err := p.samples(ctx, run, cursor)
		if err != nil {
			return nil, err
		}
		now := float64(time.Now().UnixNano())
		for _, at := range seen {
			latencies = append(latencies, (now-at)/1e6)
		}
		cursor = next
	}
	return latencies, nil
}

// samples returns the values of the samples after cursor.
func (p *platform) samples(ctx context.Context, run, cursor string) ([]float64, string, error) {
	stream, err := p.api.QueryMetrics(ctx, &baiv1.QueryMetricsRequest{Run: run, Cursor: cursor, Metrics: []string{"t"}})
	if err != nil {
		return nil, cursor, err
	}
	var values []float64
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
			values = append(values, s.GetValue())
		}
	}
}

// samplesEndToEnd measures how many samples a second go from a metrics file to
// the store, once a run that appends a file of them to it has begun, and how many
// a producer and a consumer alone move through the same kind of broker, in the
// same messages. Of several rounds, in turns, the best of each counts: what else
// the machine does disturbs the longer of the two more.
func samplesEndToEnd(ctx context.Context, b bench) ([]result, error) {
	const n, rounds = 3_000_000, 3
	var ours, bare float64
	for range rounds {
		rate, err := throughPlatform(ctx, b, n)
		if err != nil {
			return nil, err
		}
		ours = max(ours, rate)
		if rate, err = bareSamples(ctx, n); err != nil {
			return nil, err
		}
		bare = max(bare, rate)
	}
	return []result{
		least("SamplesOverBareKafka", ours/bare, "ratio", 0.25, fmt.Sprintf("%.0f samples/s end to end, %.0f/s by a bare producer and consumer", ours, bare)),
	}, nil
}

// throughPlatform returns how many of n samples a second go from a metrics file
// to the store.
func throughPlatform(ctx context.Context, b bench, n int) (rate float64, err error) {
	err = with(ctx, b, func(p *platform) error {
		file := filepath.Join(filepath.Dir(p.dir), "emitted")
		if err := emitted(file, n); err != nil {
			return err
		}
		run, err := p.submit(ctx, noop(fmt.Sprintf("#!/bin/sh\ncat %s >> \"$BENCHMARK_AI_FILE\"\n", file)))
		if err != nil {
			return err
		}
		if err := p.complete(ctx, run); err != nil {
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

// emitted makes a file of samples as client libraries write them.
func emitted(path string, n int) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	to := bufio.NewWriterSize(f, 1<<20)
	var line []byte
	for i := range n {
		line = append(strconv.AppendInt(append(line[:0], `{"t": `...), int64(i), 10), "}\n"...)
		if _, err := to.Write(line); err != nil {
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

// bareSamples moves n samples, in the messages in which the sidecar sends them,
// by a bare producer and consumer, and returns how many a second.
func bareSamples(ctx context.Context, n int) (rate float64, err error) {
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
	return move(ctx, k.Addr(), batches(n))
}

// batches returns n samples in messages of as many samples as the sidecar puts
// into one.
func batches(n int) [][]byte {
	const size = 1000
	at := time.Now()
	h := event.NewHeader("0123456789abcdef0123456789abcdef", "01kaaaaaaaaaaaaaaaaaaaaaaa", "default", "bench", at)
	source := event.Source{Role: "benchmark", Pod: "01234567-89ab-cdef-0123-456789abcdef", Container: "benchmark", Stream: event.StreamMetrics}
	var out [][]byte
	for i := 0; i < n; i += size {
		m := event.Metrics{Header: h, Source: source}
		for j := i; j < min(n, i+size); j++ {
			s := event.Sample{Seq: int64(20 * j), Name: "t", Time: at.UnixNano()}
			s.Set(float64(j))
			m.Samples = append(m.Samples, s)
		}
		msg, err := event.Encode(m)
		if err != nil {
			continue // cannot be: the batch is whole
		}
		out = append(out, msg.Value)
	}
	return out
}
