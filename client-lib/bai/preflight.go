package bai

import (
	"context"
	"fmt"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Preflight compares the needs of a descriptor with the resources that the platform can
// reach now. A missing resource is a failed check, and no error.
func (c *Client) Preflight(ctx context.Context, d Draft) (*baiv1.PreflightDescriptorResponse, error) {
	if err := c.requireFeatures(ctx, []requiredFeature{{6, "code that is sent along with what is looked at", d.WithScript}}); err != nil {
		return nil, fmt.Errorf("preflight %q: %w", d.File, err)
	}
	res, err := callWithRetry(ctx, c, baiv1.NewPreflightServiceClient(c.conn).PreflightDescriptor, &baiv1.PreflightDescriptorRequest{
		DescriptorToml: d.Text, DescriptorFile: d.File, Overrides: d.Overrides, WithScript: d.WithScript, Namespace: d.Namespace,
	})
	if err != nil {
		return nil, fmt.Errorf("preflight %q: %w", d.File, err)
	}
	return res, nil
}
