package bai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// LogOptions say which lines are meant. The zero value means all that are there.
type LogOptions struct {
	Follow    bool   // go on until the run is over and all its lines are there
	Tail      int    // only the last so many lines of each source; 0 means all
	Attempt   int    // only this attempt; 0 means all
	Container string // only this container; empty means all
}

// Logs returns lines of a run in the order in which they were read from the
// process, each once. Following, it outlives broken connections and restarts of
// the platform, once that was reached, until ctx ends. After an error there is
// nothing more.
func (c *Client) Logs(ctx context.Context, run string, o LogOptions) iter.Seq2[*baiv1.LogLine, error] {
	return func(yield func(*baiv1.LogLine, error) bool) {
		known, err := c.Get(ctx, run)
		if err == nil {
			req := &baiv1.StreamLogsRequest{
				Run:       known.GetId(),
				Follow:    o.Follow,
				Tail:      int32(min(o.Tail, math.MaxInt32)),
				Attempt:   int32(min(o.Attempt, math.MaxInt32)),
				Container: o.Container,
			}
			read := c.drain
			if o.Follow {
				read = c.follow
			}
			err = read(ctx, c.lines(req, yield))
		}
		if err != nil {
			yield(nil, fmt.Errorf("read the log of run %q: %w", run, err))
		}
	}
}

func (c *Client) lines(req *baiv1.StreamLogsRequest, yield func(*baiv1.LogLine, error) bool) source {
	return func(ctx context.Context, p pulse) error {
		stream, err := c.rpc.StreamLogs(ctx, req)
		if err != nil {
			return err
		}
		p.reached(stream.Header())
		return each(stream.Recv, p, func(res *baiv1.StreamLogsResponse) bool {
			req.Cursor = res.GetCursor()
			return handOut(res.GetLines(), yield)
		})
	}
}

// Metrics returns the samples of a run that are there, in order of origin and
// sequence, each once: those of some metrics, or all where none is named. After
// an error there is nothing more.
func (c *Client) Metrics(ctx context.Context, run string, metrics ...string) iter.Seq2[*baiv1.Sample, error] {
	return func(yield func(*baiv1.Sample, error) bool) {
		req := &baiv1.QueryMetricsRequest{Run: run, Owner: c.settings.Owner, Metrics: metrics}
		if err := c.drain(ctx, c.samples(req, yield)); err != nil {
			yield(nil, fmt.Errorf("read the metrics of run %q: %w", run, err))
		}
	}
}

func (c *Client) samples(req *baiv1.QueryMetricsRequest, yield func(*baiv1.Sample, error) bool) source {
	return func(ctx context.Context, p pulse) error {
		stream, err := c.rpc.QueryMetrics(ctx, req)
		if err != nil {
			return err
		}
		return each(stream.Recv, p, func(res *baiv1.QueryMetricsResponse) bool {
			req.Cursor = res.GetCursor()
			return handOut(res.GetSamples(), yield)
		})
	}
}

// each reads to the end of a stream, or until use wants no more of it.
func each[Res any](receive func() (Res, error), p pulse, use func(Res) bool) error {
	for {
		p.wait()
		res, err := receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if p.got(); !use(res) {
			return errEnough
		}
	}
}

func handOut[T any](all []T, yield func(T, error) bool) bool {
	for _, one := range all {
		if !yield(one, nil) {
			return false
		}
	}
	return true
}
