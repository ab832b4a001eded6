package api

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api/message"
	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Artifacts stores the files of runs.
type Artifacts interface {
	// List does the same as artifact.Repository.List.
	List(ctx context.Context, run string) ([]artifact.File, error)
	// Open does the same as artifact.Repository.Open.
	Open(ctx context.Context, run, name string, offset int64) (artifact.File, io.ReadCloser, error)
}

// chunk is the number of bytes of a file in one response.
const chunk = 512 << 10

// ListArtifacts implements bai.v1.RunService.
func (s *Server) ListArtifacts(ctx context.Context, req *baiv1.ListArtifactsRequest) (*baiv1.ListArtifactsResponse, error) {
	run, err := s.find(ctx, req)
	if err != nil {
		return nil, err
	}
	files, err := s.artifacts.List(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	resp := &baiv1.ListArtifactsResponse{}
	for _, f := range files {
		resp.Artifacts = append(resp.Artifacts, &baiv1.Artifact{Name: f.Name, Size: f.Size, Sha256: f.SHA256, Time: message.Time(f.Time)})
	}
	return resp, nil
}

// GetArtifact implements bai.v1.RunService.
func (s *Server) GetArtifact(req *baiv1.GetArtifactRequest, stream grpc.ServerStreamingServer[baiv1.GetArtifactResponse]) (err error) {
	run, err := s.find(stream.Context(), req)
	if err != nil {
		return err
	}
	_, r, err := s.artifacts.Open(stream.Context(), run.ID, req.GetName(), req.GetOffset())
	if errors.Is(err, store.ErrNotFound) {
		return rpc.NotFound(fmt.Sprintf("artifact %.100q of run %s", req.GetName(), run.ID))
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	buf := make([]byte, chunk)
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			if err := stream.Send(&baiv1.GetArtifactResponse{Data: buf[:n]}); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return fmt.Errorf("read artifact %q of run %s: %w", req.GetName(), run.ID, err)
		}
	}
}
