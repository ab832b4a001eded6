package bai

import (
	"context"
	"errors"
	"fmt"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Summaries returns the summaries of a run's metrics. The platform computes them once the
// run is over and all of its samples are stored; before, they are pending. Summaries
// returns an UnsupportedError for a platform without them.
func (c *Client) Summaries(ctx context.Context, run string) (*baiv1.GetSummariesResponse, error) {
	res, err := callWithRetry(ctx, c, c.results.GetSummaries, &baiv1.GetSummariesRequest{Run: run, Owner: c.settings.Owner})
	if err != nil {
		return nil, fmt.Errorf("get the summaries of run %q: %w", run, err)
	}
	return res, nil
}

// Environment returns the machine, system, programs and image of a run. It returns an
// UnsupportedError for a platform that does not record them.
func (c *Client) Environment(ctx context.Context, run string) (*baiv1.Environment, error) {
	res, err := callWithRetry(ctx, c, c.results.GetEnvironment, &baiv1.GetEnvironmentRequest{Run: run, Owner: c.settings.Owner})
	if err != nil {
		return nil, fmt.Errorf("get the environment of run %q: %w", run, err)
	}
	return res.GetEnvironment(), nil
}

// Unsupported reports whether err is an UnsupportedError.
func Unsupported(err error) bool {
	_, old := errors.AsType[*UnsupportedError](err)
	return old
}
