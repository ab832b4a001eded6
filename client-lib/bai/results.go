package bai

import (
	"context"
	"errors"
	"fmt"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Summaries returns what the samples of a run come to. They are computed once
// the run is over and all of its samples are there: before, they are pending. It
// is an UnsupportedError where the platform is too old to have any.
func (c *Client) Summaries(ctx context.Context, run string) (*baiv1.GetSummariesResponse, error) {
	res, err := callWithRetry(ctx, c, c.results.GetSummaries, &baiv1.GetSummariesRequest{Run: run, Owner: c.settings.Owner})
	if err != nil {
		return nil, fmt.Errorf("get the summaries of run %q: %w", run, err)
	}
	return res, nil
}

// Environment returns where a run ran and of what it was made. It is an
// UnsupportedError where the platform is too old to know it.
func (c *Client) Environment(ctx context.Context, run string) (*baiv1.Environment, error) {
	res, err := callWithRetry(ctx, c, c.results.GetEnvironment, &baiv1.GetEnvironmentRequest{Run: run, Owner: c.settings.Owner})
	if err != nil {
		return nil, fmt.Errorf("get the environment of run %q: %w", run, err)
	}
	return res.GetEnvironment(), nil
}

// Unsupported says whether an error is that of a platform too old for what it
// was asked.
func Unsupported(err error) bool {
	_, old := errors.AsType[*UnsupportedError](err)
	return old
}
