package bai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Watch returns every change of a run after a revision (0: all), once and in
// order, and ends after the terminal one. Once the platform was reached it
// outlives broken connections and restarts of the platform until ctx ends.
// After an error there is nothing more.
func (c *Client) Watch(ctx context.Context, run string, after int64) iter.Seq2[*baiv1.Change, error] {
	return func(yield func(*baiv1.Change, error) bool) {
		current, err := c.Get(ctx, run)
		if err != nil {
			yield(nil, fmt.Errorf("watch run %q: %w", run, err))
			return
		}
		w := watch{client: c, run: current.GetId(), last: after, yield: yield}
		if err := c.follow(ctx, w.open); err != nil {
			yield(nil, fmt.Errorf("watch run %q: %w", run, err))
		}
	}
}

// Wait returns a run after its end.
func (c *Client) Wait(ctx context.Context, run string) (*baiv1.Run, error) {
	for _, err := range c.Watch(ctx, run, 0) {
		if err != nil {
			return nil, err
		}
	}
	return c.Get(ctx, run)
}

type watch struct {
	client *Client
	run    string
	last   int64 // revision that was handed out last
	yield  func(*baiv1.Change, error) bool
}

func (w *watch) open(ctx context.Context, p streamWatchdog) error {
	stream, err := w.client.rpc.WatchRun(ctx, &baiv1.WatchRunRequest{Run: w.run, AfterRevision: w.last})
	if err != nil {
		return err
	}
	p.onHeader(stream.Header())
	for {
		p.beforeRecv()
		res, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return &UnavailableError{Target: w.client.target, Message: "it ended the watch before the run had ended"}
		}
		if err != nil {
			return err
		}
		p.afterRecv()
		if done, err := w.next(res.GetChange()); done || err != nil {
			return err
		}
	}
}

func (w *watch) next(change *baiv1.Change) (done bool, err error) {
	switch revision := change.GetRevision(); {
	case revision <= w.last:
		return false, nil
	case revision > w.last+1:
		return false, &ServerError{Message: fmt.Sprintf("revision %d came after %d", revision, w.last)}
	default:
		w.last = revision
	}
	if !w.yield(change, nil) {
		return false, errStopped
	}
	return change.GetPhase() == baiv1.Phase_PHASE_FINISHED, nil
}
