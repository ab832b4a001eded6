package bai

import (
	"context"
	"fmt"
	"iter"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

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
	Page      int               // runs in one request, at most 1000; 0 means 50
}

// List returns runs, newest first, without their descriptors. It asks for pages
// as they are needed. After an error there is nothing more.
func (c *Client) List(ctx context.Context, f Filter) iter.Seq2[*baiv1.Run, error] {
	return func(yield func(*baiv1.Run, error) bool) {
		for req := f.request(); ; {
			res, err := ask(ctx, c, c.rpc.ListRuns, req)
			if err != nil {
				yield(nil, fmt.Errorf("list runs: %w", err))
				return
			}
			for _, run := range res.GetRuns() {
				if !yield(run, nil) {
					return
				}
			}
			if req.PageToken = res.GetNextPageToken(); req.GetPageToken() == "" {
				return
			}
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
	}
	if !f.Since.IsZero() {
		req.Since = timestamppb.New(f.Since)
	}
	if !f.Until.IsZero() {
		req.Until = timestamppb.New(f.Until)
	}
	return req
}
