package bai

import (
	"context"
	"fmt"
	"iter"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Sets returns the sets of an owner and of a team, in the order of their IDs, without
// their descriptors; an empty name means all. After an error there is nothing more.
func (c *Client) Sets(ctx context.Context, owner, namespace string) iter.Seq2[*baiv1.Set, error] {
	return c.SetsOfSchedule(ctx, "", owner, namespace)
}

// SetsOfSchedule does the same as Sets, for those that the schedule with that ID made.
func (c *Client) SetsOfSchedule(ctx context.Context, schedule, owner, namespace string) iter.Seq2[*baiv1.Set, error] {
	return func(yield func(*baiv1.Set, error) bool) {
		if err := c.requireFeatures(ctx, []requiredFeature{{8, "the sets of one schedule", schedule != ""}}); err != nil {
			yield(nil, fmt.Errorf("list sets: %w", err))
			return
		}
		yieldPages(yield, func(token string) (*baiv1.ListSetsResponse, error) {
			res, err := callWithRetry(ctx, c, c.sets.ListSets, &baiv1.ListSetsRequest{
				Owner: owner, Namespace: namespace, ScheduleId: schedule, PageSize: 500, PageToken: token,
			})
			if err != nil {
				return nil, fmt.Errorf("list sets: %w", err)
			}
			return res, nil
		}, (*baiv1.ListSetsResponse).GetSets)
	}
}

// Set returns a set, with its descriptor and its active runs.
func (c *Client) Set(ctx context.Context, name string) (*baiv1.Set, error) {
	res, err := callWithRetry(ctx, c, c.sets.GetSet, &baiv1.GetSetRequest{Set: name, Owner: c.settings.Owner})
	if err != nil {
		return nil, fmt.Errorf("get set %q: %w", name, withNotFoundKind("set", err))
	}
	return res.GetSet(), nil
}

// Cells returns the cells of a set, each once with all of its runs, in the order of the
// sweep. It asks for pages as they are needed. After an error there is nothing more.
func (c *Client) Cells(ctx context.Context, name string) iter.Seq2[*baiv1.Cell, error] {
	return func(yield func(*baiv1.Cell, error) bool) {
		var last *baiv1.Cell // the next page may continue it
		for cell, err := range c.cellPages(ctx, name) {
			switch {
			case err != nil:
				yield(nil, fmt.Errorf("list the cells of set %q: %w", name, withNotFoundKind("set", err)))
				return
			case last != nil && last.GetId() == cell.GetId():
				last.Runs = append(last.Runs, cell.GetRuns()...)
				continue
			case last != nil && !yield(last, nil):
				return
			}
			last = cell
		}
		if last != nil {
			yield(last, nil)
		}
	}
}

// cellPages returns the cells of all pages, as the platform sends them.
func (c *Client) cellPages(ctx context.Context, name string) iter.Seq2[*baiv1.Cell, error] {
	return func(yield func(*baiv1.Cell, error) bool) {
		yieldPages(yield, func(token string) (*baiv1.ListCellsResponse, error) {
			return callWithRetry(ctx, c, c.sets.ListCells,
				&baiv1.ListCellsRequest{Set: name, Owner: c.settings.Owner, PageSize: 500, PageToken: token})
		}, (*baiv1.ListCellsResponse).GetCells)
	}
}

// SetResults returns the results of the cells of a set, in the order of the sweep, of all
// metrics or of those with the given names. It asks for pages as they are needed. After an
// error there is nothing more.
func (c *Client) SetResults(ctx context.Context, name string, metrics ...string) iter.Seq2[*baiv1.CellResult, error] {
	return func(yield func(*baiv1.CellResult, error) bool) {
		yieldPages(yield, func(token string) (*baiv1.GetSetResultsResponse, error) {
			res, err := callWithRetry(ctx, c, c.sets.GetSetResults,
				&baiv1.GetSetResultsRequest{Set: name, Owner: c.settings.Owner, PageSize: 500, Metrics: metrics, PageToken: token})
			if err != nil {
				return nil, fmt.Errorf("get the results of set %q: %w", name, withNotFoundKind("set", err))
			}
			return res, nil
		}, (*baiv1.GetSetResultsResponse).GetCells)
	}
}

// CancelSet ends a set: no more of its runs are submitted, and those that have not ended
// are canceled. It does not wait for that. A second call, or one after the end, changes
// nothing.
func (c *Client) CancelSet(ctx context.Context, name string) (*baiv1.Set, error) {
	res, err := callWithRetry(ctx, c, c.sets.CancelSet, &baiv1.CancelSetRequest{Set: name, Owner: c.settings.Owner})
	if err != nil {
		return nil, fmt.Errorf("cancel set %q: %w", name, withNotFoundKind("set", err))
	}
	return res.GetSet(), nil
}

// ResumeSet has a set that was canceled, or that a failure has stopped, go on at the next
// run. For a running set it changes nothing.
func (c *Client) ResumeSet(ctx context.Context, name string) (*baiv1.Set, error) {
	res, err := callWithRetry(ctx, c, c.sets.ResumeSet, &baiv1.ResumeSetRequest{Set: name, Owner: c.settings.Owner})
	if err != nil {
		return nil, fmt.Errorf("resume set %q: %w", name, withNotFoundKind("set", err))
	}
	return res.GetSet(), nil
}

// RerunSet makes a set of the runs of another one: of all of them, or of those that did not
// succeed. Calls with the same idempotency key make one set.
func (c *Client) RerunSet(ctx context.Context, name string, failed bool, key string) (*baiv1.Set, error) {
	res, err := callWithRetry(ctx, c, c.sets.RerunSet,
		&baiv1.RerunSetRequest{Set: name, Owner: c.settings.Owner, IdempotencyKey: key, Failed: failed})
	if err != nil {
		return nil, fmt.Errorf("run set %q again: %w", name, withNotFoundKind("set", err))
	}
	return res.GetSet(), nil
}

// WatchSet returns a set as it is, then after its changes, and ends when it has finished.
// Changes that follow each other quickly may come as one. Once the platform was reached it
// outlives broken connections and restarts of the platform until ctx ends. After an error
// there is nothing more.
func (c *Client) WatchSet(ctx context.Context, name string) iter.Seq2[*baiv1.Set, error] {
	return func(yield func(*baiv1.Set, error) bool) {
		current, err := c.Set(ctx, name)
		if err != nil {
			yield(nil, fmt.Errorf("watch set %q: %w", name, err))
			return
		}
		w := setWatch{client: c, set: current.GetId(), yield: yield}
		if err := c.follow(ctx, w.open); err != nil {
			yield(nil, fmt.Errorf("watch set %q: %w", name, err))
		}
	}
}

// WaitSet returns a set after it has finished.
func (c *Client) WaitSet(ctx context.Context, name string) (*baiv1.Set, error) {
	var last *baiv1.Set
	for set, err := range c.WatchSet(ctx, name) {
		if err != nil {
			return nil, err
		}
		last = set
	}
	return last, nil
}

type setWatch struct {
	client *Client
	set    string
	last   int64 // revision that was handed out last
	yield  func(*baiv1.Set, error) bool
}

func (w *setWatch) open(ctx context.Context, p streamWatchdog) error {
	stream, err := w.client.sets.WatchSet(ctx, &baiv1.WatchSetRequest{Set: w.set, Owner: w.client.settings.Owner, AfterRevision: w.last})
	if err != nil {
		return err
	}
	p.onHeader(stream.Header())
	finished := false
	err = receiveAll(stream.Recv, p, func(res *baiv1.WatchSetResponse) bool {
		w.last = res.GetSet().GetRevision()
		finished = res.GetSet().GetState() == baiv1.SetState_SET_STATE_FINISHED
		return w.yield(res.GetSet(), nil) && !finished
	})
	switch {
	case finished:
		return nil
	case err == nil:
		return &UnavailableError{Target: w.client.target, Message: "it ended the watch before the set had finished"}
	}
	return err
}
