package bai

import (
	"context"
	"fmt"
	"iter"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Compare compares two sides of runs, as the request names them. Names of runs and sets are
// those of the client's owner, unless the request has one. It returns an UnsupportedError for
// a platform without comparisons.
func (c *Client) Compare(ctx context.Context, req *baiv1.CompareRunsRequest) (*baiv1.CompareRunsResponse, error) {
	if req.GetOwner() == "" {
		req.Owner = c.settings.Owner
	}
	res, err := callWithRetry(ctx, c, c.analyses.CompareRuns, req)
	if err != nil {
		return nil, fmt.Errorf("compare %q with %q: %w", req.GetOld(), req.GetNew(), err)
	}
	return res, nil
}

// History returns the series of a task over its runs, with the changes of their levels.
func (c *Client) History(ctx context.Context, req *baiv1.QueryHistoryRequest) (*baiv1.QueryHistoryResponse, error) {
	res, err := callWithRetry(ctx, c, c.analyses.QueryHistory, req)
	if err != nil {
		return nil, fmt.Errorf("get the history of task %q: %w", req.GetTask(), withNotFoundKind("task", err))
	}
	return res, nil
}

// Power says which change of its metrics runs of a task can show.
func (c *Client) Power(ctx context.Context, req *baiv1.PlanPowerRequest) (*baiv1.PlanPowerResponse, error) {
	res, err := callWithRetry(ctx, c, c.analyses.PlanPower, req)
	if err != nil {
		return nil, fmt.Errorf("plan runs of task %q: %w", req.GetTask(), withNotFoundKind("task", err))
	}
	return res, nil
}

// Rank groups runs by an attribute, and ranks the groups. Names of runs and sets are those of the
// client's owner, unless the request has one. It returns an UnsupportedError for a platform
// without rankings.
func (c *Client) Rank(ctx context.Context, req *baiv1.RankRunsRequest) (*baiv1.RankRunsResponse, error) {
	if req.GetOwner() == "" {
		req.Owner = c.settings.Owner
	}
	res, err := callWithRetry(ctx, c, c.analyses.RankRuns, req)
	if err != nil {
		return nil, fmt.Errorf("rank %q by %s: %w", req.GetRuns(), req.GetBy(), err)
	}
	return res, nil
}

// SetBaseline makes a name stand for runs, and returns the baseline with its newest revision.
// A second call changes nothing.
func (c *Client) SetBaseline(ctx context.Context, req *baiv1.SetBaselineRequest) (*baiv1.Baseline, error) {
	if req.GetOwner() == "" {
		req.Owner = c.settings.Owner
	}
	res, err := callWithRetry(ctx, c, c.baselines.SetBaseline, req)
	if err != nil {
		return nil, fmt.Errorf("set baseline %q: %w", req.GetName(), withNotFoundKind("operand", err))
	}
	return res.GetBaseline(), nil
}

// Baseline returns a baseline of a team with its revisions.
func (c *Client) Baseline(ctx context.Context, namespace, name string) (*baiv1.Baseline, error) {
	res, err := callWithRetry(ctx, c, c.baselines.GetBaseline, &baiv1.GetBaselineRequest{Name: name, Namespace: namespace})
	if err != nil {
		return nil, fmt.Errorf("get baseline %q: %w", name, withNotFoundKind("baseline", err))
	}
	return res.GetBaseline(), nil
}

// Baselines returns the baselines of a team by name, each with its newest revision without the
// runs. After an error there is nothing more.
func (c *Client) Baselines(ctx context.Context, namespace string) iter.Seq2[*baiv1.Baseline, error] {
	return func(yield func(*baiv1.Baseline, error) bool) {
		yieldPages(yield, func(token string) (*baiv1.ListBaselinesResponse, error) {
			res, err := callWithRetry(ctx, c, c.baselines.ListBaselines,
				&baiv1.ListBaselinesRequest{Namespace: namespace, PageSize: 500, PageToken: token})
			if err != nil {
				return nil, fmt.Errorf("list baselines: %w", err)
			}
			return res, nil
		}, (*baiv1.ListBaselinesResponse).GetBaselines)
	}
}

// DeleteBaseline removes a baseline of a team, and reports whether it existed. Its runs stay.
func (c *Client) DeleteBaseline(ctx context.Context, namespace, name string) (existed bool, err error) {
	res, err := callWithRetry(ctx, c, c.baselines.DeleteBaseline, &baiv1.DeleteBaselineRequest{Name: name, Namespace: namespace})
	if err != nil {
		return false, fmt.Errorf("delete baseline %q: %w", name, err)
	}
	return res.GetExisted(), nil
}
