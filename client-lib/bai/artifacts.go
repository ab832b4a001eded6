package bai

import (
	"context"
	"fmt"
	"iter"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Artifacts returns the files that were kept of a run, by name.
func (c *Client) Artifacts(ctx context.Context, run string) ([]*baiv1.Artifact, error) {
	res, err := callWithRetry(ctx, c, c.rpc.ListArtifacts, &baiv1.ListArtifactsRequest{Run: run, Owner: c.settings.Owner})
	if err != nil {
		return nil, fmt.Errorf("list the artifacts of run %q: %w", run, err)
	}
	return res.GetArtifacts(), nil
}

// Artifact returns the bytes of an artifact of a run from an offset on, in pieces. It
// resumes after a broken connection. The bytes are not checked against the file's digest.
// A piece is valid until the next one is requested. An error is the last element.
func (c *Client) Artifact(ctx context.Context, run, name string, offset int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		req := &baiv1.GetArtifactRequest{Run: run, Owner: c.settings.Owner, Name: name, Offset: offset}
		if err := c.drain(ctx, c.pieces(req, yield)); err != nil {
			yield(nil, fmt.Errorf("read artifact %q of run %q: %w", name, run, withNotFoundKind("artifact", err)))
		}
	}
}

func (c *Client) pieces(req *baiv1.GetArtifactRequest, yield func([]byte, error) bool) streamFunc {
	return func(ctx context.Context, p streamWatchdog) error {
		stream, err := c.rpc.GetArtifact(ctx, req)
		if err != nil {
			return err
		}
		return receiveAll(stream.Recv, p, func(res *baiv1.GetArtifactResponse) bool {
			req.Offset += int64(len(res.GetData()))
			return yield(res.GetData(), nil)
		})
	}
}
