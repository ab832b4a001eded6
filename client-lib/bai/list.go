package bai

import (
	"context"
	"fmt"
	"iter"
	"time"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Filter says which runs are meant. The zero value means all.
type Filter struct {
	Owner     string // only this owner's; empty means everybody's
	Namespace string // only this team's
	Phases    []baiv1.Phase
	Outcomes  []baiv1.Outcome
	Labels    map[string]string // only runs with all of these
	Since     time.Time         // only those submitted then or later
	Until     time.Time         // only those submitted before
	Schedule  string            // only the firings of the schedule of this ID
	Set       string            // only the runs of the set of this ID
	Cell      string            // only the runs of the cell of Set with this name
	Text      string            // only those whose ID, name or file begins so, or whose task is this
	Oldest    bool              // the oldest first, instead of the newest
	Page      int               // runs in one request, at most 1000; 0 means 50

	Framework        string // only those whose descriptor names this framework
	FrameworkVersion string // only those whose descriptor names this version of a framework
	DataID           string // only those with a data source or model of this ID
}

// List returns runs, newest first unless the filter says otherwise, without their descriptors. It asks for pages
// as they are needed. After an error there is nothing more.
func (c *Client) List(ctx context.Context, f Filter) iter.Seq2[*baiv1.Run, error] {
	return func(yield func(*baiv1.Run, error) bool) {
		err := c.requireFeatures(ctx, f.requiredFeatures())
		for req, more := f.request(), true; more && err == nil; {
			var res *baiv1.ListRunsResponse
			if res, err = callWithRetry(ctx, c, c.rpc.ListRuns, req); err == nil {
				req.PageToken = res.GetNextPageToken()
				more = yieldAll(res.GetRuns(), yield) && req.GetPageToken() != ""
			}
		}
		if err != nil {
			yield(nil, fmt.Errorf("list runs: %w", err))
		}
	}
}

func (f Filter) request() *baiv1.ListRunsRequest {
	req := &baiv1.ListRunsRequest{
		PageSize:  int32(min(max(f.Page, 0), 1000)),
		Phases:    f.Phases,
		Outcomes:  f.Outcomes,
		Labels:    f.Labels,
		Owner:     f.Owner,
		Namespace: f.Namespace,
		Text:      f.Text,

		ScheduleId: f.Schedule, SetId: f.Set, Cell: f.Cell,
		Framework: f.Framework, FrameworkVersion: f.FrameworkVersion, DataId: f.DataID,
	}
	if f.Oldest {
		req.Order = baiv1.Order_ORDER_OLDEST_FIRST
	}
	req.Since, req.Until = stamp(f.Since), stamp(f.Until)
	return req
}

// requiredFeatures are the parts of a filter that not every platform understands.
func (f Filter) requiredFeatures() []requiredFeature {
	return []requiredFeature{
		{2, "a list by text", f.Text != ""},
		{2, "a list in another order", f.Oldest},
		{3, "a list of a schedule's runs", f.Schedule != ""},
		{6, "a list by framework", f.Framework != "" || f.FrameworkVersion != ""},
		{6, "a list by the ID of data", f.DataID != ""},
		{7, "a list of a set's runs", f.Set != ""},
	}
}
