package bai

import (
	"context"
	"errors"
	"fmt"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// A need is something in a request that an older platform would not see.
type requiredFeature struct {
	revision int32
	name     string
	used     bool
}

// requireFeatures returns an UnsupportedError if a request uses features that the
// platform would silently ignore. It asks the platform for its revision only if features
// are used, and once.
func (c *Client) requireFeatures(ctx context.Context, all []requiredFeature) error {
	for _, n := range all {
		if !n.used || c.serverRevision.Load() >= n.revision {
			continue
		}
		revision, err := c.fetchRevision(ctx)
		if err != nil {
			return err
		}
		c.serverRevision.Store(revision)
		if revision < n.revision {
			return &UnsupportedError{Message: fmt.Sprintf(
				"the platform at %s is older than this client: it does not understand %s (revision %d of the API; it has %d)", c.target,
				n.name, n.revision, revision)}
		}
	}
	return nil
}

// fetchRevision is the revision of the API that the platform has.
func (c *Client) fetchRevision(ctx context.Context) (int32, error) {
	about, err := c.About(ctx)
	if _, old := errors.AsType[*UnsupportedError](err); old {
		return 1, nil
	}
	return about.Revision, err
}

// About describes a platform.
type About struct {
	Version  string // such as "v1.2.0"
	Commit   string // commit of the build; may be empty
	Revision int32  // of the API that it understands, from 1
}

// About returns the platform's description, or an UnsupportedError for a platform that is
// too old to return one.
func (c *Client) About(ctx context.Context) (About, error) {
	res, err := callWithRetry(ctx, c, c.rpc.GetVersion, &baiv1.GetVersionRequest{})
	if err != nil {
		return About{}, fmt.Errorf("ask for the platform's version: %w", err)
	}
	return About{Version: res.GetVersion(), Commit: res.GetCommit(), Revision: max(res.GetRevision(), 1)}, nil
}

// Version returns the platform's version and commit, as About does.
func (c *Client) Version(ctx context.Context) (version, commit string, err error) {
	about, err := c.About(ctx)
	return about.Version, about.Commit, err
}
