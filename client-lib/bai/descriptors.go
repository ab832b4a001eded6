package bai

import (
	"context"
	"fmt"
	"iter"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// A Draft is a descriptor as its writer has it.
type Draft struct {
	Text      []byte // TOML, at most 256 KiB
	File      string // where it was read, for faults
	Overrides []*baiv1.Override

	WithScript bool   // for Render and Preflight: code is sent along with the run
	Namespace  string // the team, whose descriptors may name what settings say; empty means "default"
}

// Validate returns every fault of a descriptor, as Submit would find it; none
// for one that can be run.
func (c *Client) Validate(ctx context.Context, d Draft) ([]*baiv1.Fault, error) {
	res, err := callWithRetry(ctx, c, c.descriptors.ValidateDescriptor, &baiv1.ValidateDescriptorRequest{
		DescriptorToml: d.Text, DescriptorFile: d.File, Overrides: d.Overrides, Namespace: d.Namespace,
	})
	if err != nil {
		return nil, fmt.Errorf("validate %q: %w", d.File, err)
	}
	return res.GetFaults(), nil
}

// Render returns the Kubernetes objects, in YAML, that a run of a descriptor
// would be under the settings of the platform.
func (c *Client) Render(ctx context.Context, d Draft) (string, error) {
	if err := c.requireFeatures(ctx, []requiredFeature{{3, "code that is sent along", d.WithScript}}); err != nil {
		return "", fmt.Errorf("render %q: %w", d.File, err)
	}
	res, err := callWithRetry(ctx, c, c.descriptors.RenderDescriptor, &baiv1.RenderDescriptorRequest{
		DescriptorToml: d.Text, DescriptorFile: d.File, Overrides: d.Overrides, WithScript: d.WithScript, Namespace: d.Namespace,
	})
	if err != nil {
		return "", fmt.Errorf("render %q: %w", d.File, err)
	}
	return res.GetManifest(), nil
}

// Pushed is the stored version of a descriptor.
type Pushed struct {
	*baiv1.StoredDescriptor

	Repeated bool           // it was the newest version before
	Warnings []*baiv1.Fault // warnings about the descriptor
}

// Push keeps a descriptor as the next version of a name, in a team; an empty
// team means "default". The newest version pushed again is no new one.
func (c *Client) Push(ctx context.Context, namespace, name string, d Draft) (Pushed, error) {
	res, err := callWithRetry(ctx, c, c.descriptors.PushDescriptor, &baiv1.PushDescriptorRequest{
		Name: name, Namespace: namespace, DescriptorToml: d.Text, DescriptorFile: d.File,
	})
	if err != nil {
		return Pushed{}, fmt.Errorf("push %q: %w", d.File, err)
	}
	return Pushed{res.GetDescriptor_(), res.GetRepeated(), res.GetWarnings()}, nil
}

// Kept returns the descriptors that a team keeps, by name: the newest version of
// each, or all versions of the one that is named, newest first. After an error
// there is nothing more.
func (c *Client) Kept(ctx context.Context, namespace, name string) iter.Seq2[*baiv1.StoredDescriptor, error] {
	return func(yield func(*baiv1.StoredDescriptor, error) bool) {
		yieldPages(yield, func(token string) (*baiv1.ListDescriptorsResponse, error) {
			res, err := callWithRetry(ctx, c, c.descriptors.ListDescriptors,
				&baiv1.ListDescriptorsRequest{Namespace: namespace, Name: name, PageSize: 500, PageToken: token})
			if err != nil {
				return nil, fmt.Errorf("list descriptors: %w", err)
			}
			return res, nil
		}, (*baiv1.ListDescriptorsResponse).GetDescriptors)
	}
}

// Fetch returns the text of a descriptor that the platform keeps (stored:NAME,
// stored:NAME@VERSION) or can reach (https://, s3://), and where that came from.
func (c *Client) Fetch(ctx context.Context, namespace, uri string) ([]byte, *baiv1.Origination, error) {
	res, err := callWithRetry(ctx, c, c.descriptors.GetDescriptor, &baiv1.GetDescriptorRequest{Uri: uri, Namespace: namespace})
	if err != nil {
		return nil, nil, fmt.Errorf("get descriptor %q: %w", uri, withNotFoundKind("descriptor", err))
	}
	return res.GetDescriptorToml(), res.GetOrigination(), nil
}
