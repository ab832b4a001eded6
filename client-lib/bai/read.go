package bai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// LogOptions select lines. The zero value selects all stored lines.
type LogOptions struct {
	Follow    bool      // continue until the run is over and all its lines are stored
	Tail      int       // only the last so many lines of each source; 0 means all
	Attempt   int       // only this attempt; 0 means all
	Container string    // only this container; empty means all
	Since     time.Time // only lines that were read then or later
	Search    string    // only lines that have every word of this text; empty means all
}

// requiredFeatures are the parts of the options that not every platform understands.
func (o LogOptions) requiredFeatures() []requiredFeature {
	return []requiredFeature{{2, "lines since a time", !o.Since.IsZero()}, {5, "a search for lines", o.Search != ""}}
}

// Logs returns lines of a run in the order in which they were read from the
// process, each once. Following, it outlives broken connections and restarts of
// the platform, once that was reached, until ctx ends. After an error there is
// nothing more.
func (c *Client) Logs(ctx context.Context, run string, o LogOptions) iter.Seq2[*baiv1.LogLine, error] {
	return func(yield func(*baiv1.LogLine, error) bool) {
		if err := c.requireFeatures(ctx, o.requiredFeatures()); err != nil {
			yield(nil, fmt.Errorf("read the log of run %q: %w", run, err))
			return
		}
		current, err := c.Get(ctx, run)
		if err == nil {
			req := &baiv1.StreamLogsRequest{
				Run:       current.GetId(),
				Follow:    o.Follow,
				Tail:      int32(min(o.Tail, math.MaxInt32)),
				Attempt:   int32(min(o.Attempt, math.MaxInt32)),
				Container: o.Container,
				Since:     stamp(o.Since),
				Search:    o.Search,
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

func (c *Client) lines(req *baiv1.StreamLogsRequest, yield func(*baiv1.LogLine, error) bool) streamFunc {
	return func(ctx context.Context, p streamWatchdog) error {
		stream, err := c.rpc.StreamLogs(ctx, req)
		if err != nil {
			return err
		}
		p.onHeader(stream.Header())
		return receiveAll(stream.Recv, p, func(res *baiv1.StreamLogsResponse) bool {
			req.Cursor = res.GetCursor()
			return yieldAll(res.GetLines(), yield)
		})
	}
}

// Metrics returns the stored samples of a run, in order of origin and sequence, each
// once: those of the named metrics, or all without names. An error is the last element.
func (c *Client) Metrics(ctx context.Context, run string, metrics ...string) iter.Seq2[*baiv1.Sample, error] {
	return func(yield func(*baiv1.Sample, error) bool) {
		for measured, err := range c.Samples(ctx, Query{Run: run, Metrics: metrics}) {
			if !yield(measured.Sample, err) {
				return
			}
		}
	}
}

// A Query says which samples are meant.
type Query struct {
	Run     string    // ID, or name; empty for those of all runs of Runs
	Runs    Filter    // which runs, where Run is empty; Page is ignored
	Metrics []string  // only these metrics; none means all
	Since   time.Time // only samples measured then or later
	Until   time.Time // only samples measured before
}

// A Measured sample is one of a run.
type Measured struct {
	RunID string // empty where an older platform does not say it
	*baiv1.Sample
}

// Samples returns the stored samples of a run, in order of origin and sequence, or those
// of many runs, run by run, newest first. Each comes once. An error is the last element.
func (c *Client) Samples(ctx context.Context, q Query) iter.Seq2[Measured, error] {
	return func(yield func(Measured, error) bool) {
		err := c.requireFeatures(ctx, q.requiredFeatures())
		if err == nil {
			err = c.drain(ctx, c.samples(q.request(c.settings.Owner), yield))
		}
		if err != nil {
			yield(Measured{}, fmt.Errorf("read the metrics of %s: %w", q.subject(), err))
		}
	}
}

func (q Query) subject() string {
	if q.Run == "" {
		return "runs"
	}
	return fmt.Sprintf("run %q", q.Run)
}

func (q Query) request(owner string) *baiv1.QueryMetricsRequest {
	req := &baiv1.QueryMetricsRequest{Run: q.Run, Metrics: q.Metrics, Since: stamp(q.Since), Until: stamp(q.Until)}
	if q.Run == "" {
		req.Filter = q.Runs.request()
		return req
	}
	req.Owner = owner
	return req
}

// requiredFeatures are the parts of a query that not every platform understands.
func (q Query) requiredFeatures() []requiredFeature {
	return []requiredFeature{
		{2, "samples of many runs", q.Run == ""},
		{2, "samples of a time", !q.Since.IsZero() || !q.Until.IsZero()},
	}
}

func (c *Client) samples(req *baiv1.QueryMetricsRequest, yield func(Measured, error) bool) streamFunc {
	return func(ctx context.Context, p streamWatchdog) error {
		stream, err := c.rpc.QueryMetrics(ctx, req)
		if err != nil {
			return err
		}
		return receiveAll(stream.Recv, p, func(res *baiv1.QueryMetricsResponse) bool {
			req.Cursor = res.GetCursor()
			for _, s := range res.GetSamples() {
				if !yield(Measured{res.GetRunId(), s}, nil) {
					return false
				}
			}
			return true
		})
	}
}

// stamp is a time as it travels; none for the zero time.
func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// receiveAll reads to the end of a stream, or until use wants no more of it.
func receiveAll[Res any](receive func() (Res, error), p streamWatchdog, use func(Res) bool) error {
	for {
		p.beforeRecv()
		res, err := receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if p.afterRecv(); !use(res) {
			return errStopped
		}
	}
}

func yieldAll[T any](all []T, yield func(T, error) bool) bool {
	for _, one := range all {
		if !yield(one, nil) {
			return false
		}
	}
	return true
}

// yieldPages hands the items of a list to yield, page by page, and an error as the last element. The function ask requests the page of a
// token; "" is the first page.
func yieldPages[T any, Res interface{ GetNextPageToken() string }](
	yield func(T, error) bool, ask func(token string) (Res, error), items func(Res) []T,
) {
	for token := ""; ; {
		res, err := ask(token)
		if err != nil {
			var none T
			yield(none, err)
			return
		}
		if !yieldAll(items(res), yield) {
			return
		}
		if token = res.GetNextPageToken(); token == "" {
			return
		}
	}
}
