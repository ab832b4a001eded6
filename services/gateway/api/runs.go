package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/intake"
	"github.com/benchmark-ai/bai/services/gateway/record"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// UserMetadata is where a client says who calls.
const UserMetadata = "bai-user"

// anonymous is who calls if the client does not say.
const anonymous = "anonymous"

// Sizes of pages of runs.
const (
	usualPage = 50
	mostPage  = 1000
)

// SubmitRun implements bai.v1.RunService.
func (s *Server) SubmitRun(ctx context.Context, req *baiv1.SubmitRunRequest) (*baiv1.SubmitRunResponse, error) {
	acc, err := s.intake.Submit(ctx, intake.Request{
		Key: req.GetIdempotencyKey(), Descriptor: req.GetDescriptorToml(), File: req.GetDescriptorFile(),
		Owner: owner(ctx, req), Namespace: req.GetNamespace(), Name: req.GetName(), Labels: req.GetLabels(),
	})
	if err != nil {
		return nil, err
	}
	return &baiv1.SubmitRunResponse{
		Result: &baiv1.SubmitRunResponse_RunId{RunId: acc.Run}, Repeated: acc.Repeated, Warnings: faultsOf(acc.Warnings),
	}, nil
}

// GetRun implements bai.v1.RunService.
func (s *Server) GetRun(ctx context.Context, req *baiv1.GetRunRequest) (*baiv1.GetRunResponse, error) {
	run, err := s.find(ctx, req)
	if err != nil {
		return nil, err
	}
	c, err := s.completeness(ctx, run)
	if err != nil {
		return nil, err
	}
	out := runOf(run)
	out.Completeness = &baiv1.Completeness{
		Complete: c.Complete, Samples: c.Samples, Lines: c.Lines, Missing: c.Missing, Awaited: c.Awaited, Dropped: c.Dropped,
	}
	return &baiv1.GetRunResponse{Run: out}, nil
}

// ListRuns implements bai.v1.RunService.
func (s *Server) ListRuns(ctx context.Context, req *baiv1.ListRunsRequest) (*baiv1.ListRunsResponse, error) {
	if req.GetPageSize() < 0 {
		return nil, invalidArgument("page_size", fmt.Sprintf("is %d, less than none", req.GetPageSize()), "leave it out")
	}
	filter := filterOf(req)
	for limit := min(cmp.Or(int(req.GetPageSize()), usualPage), mostPage); ; limit /= 2 {
		runs, next, err := s.store.Runs(ctx, filter, req.GetPageToken(), limit)
		if errors.Is(err, store.ErrCursor) {
			return nil, invalidArgument("page_token", "is not one that this server gave for these filters", "leave it empty for the first page")
		}
		if err != nil {
			return nil, err
		}
		resp := &baiv1.ListRunsResponse{NextPageToken: next}
		for _, r := range runs {
			r.Descriptor = ""
			resp.Runs = append(resp.Runs, runOf(r))
		}
		if limit == 1 || proto.Size(resp) <= maxResponse {
			return resp, nil
		}
	}
}

// CancelRun implements bai.v1.RunService.
func (s *Server) CancelRun(ctx context.Context, req *baiv1.CancelRunRequest) (*baiv1.CancelRunResponse, error) {
	run, err := s.find(ctx, req)
	if err != nil {
		return nil, err
	}
	if run.Phase != event.PhaseFinished {
		if err := s.intake.Cancel(ctx, run, caller(ctx)); err != nil {
			return nil, err
		}
		if run, err = s.run(ctx, run.ID); err != nil {
			return nil, err
		}
	}
	return &baiv1.CancelRunResponse{Run: runOf(run)}, nil
}

// GetVersion implements bai.v1.RunService.
func (s *Server) GetVersion(context.Context, *baiv1.GetVersionRequest) (*baiv1.GetVersionResponse, error) {
	return &baiv1.GetVersionResponse{Version: s.version.Version, Commit: s.version.Commit}, nil
}

// caller returns who calls, as far as the client says.
func caller(ctx context.Context) string {
	for _, user := range metadata.ValueFromIncomingContext(ctx, UserMetadata) {
		if user != "" {
			return user
		}
	}
	return anonymous
}

// owner returns whose run a request is about.
func owner(ctx context.Context, req interface{ GetOwner() string }) string {
	return cmp.Or(req.GetOwner(), caller(ctx))
}

// named is a request about one run.
type named interface {
	GetRun() string
	GetOwner() string
}

// find returns the run that a request names, by its ID or by the name that its
// owner gave it, or says NOT_FOUND.
func (s *Server) find(ctx context.Context, req named) (store.Run, error) {
	ref := req.GetRun()
	if ref == "" {
		return store.Run{}, invalidArgument("run", "is empty", "give the ID or the name of a run")
	}
	if intake.IsRun(ref) {
		return s.run(ctx, strings.ToLower(ref))
	}
	id, err := s.intake.Named(ctx, owner(ctx, req), ref)
	if errors.Is(err, store.ErrNotFound) {
		return store.Run{}, notFound(fmt.Sprintf("run %.100q of owner %.100q", ref, owner(ctx, req)))
	}
	if err != nil {
		return store.Run{}, err
	}
	return s.run(ctx, id)
}

// run returns what is known of a run: its projection, and what was submitted
// where that is not part of it yet.
func (s *Server) run(ctx context.Context, id string) (store.Run, error) {
	run, err := s.store.Run(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return store.Run{}, err
	}
	if err == nil && run.Descriptor != "" {
		return run, nil
	}
	known := &run
	if err != nil {
		known = nil
	}
	d, err := s.store.Doc(ctx, store.KindSubmission, id)
	if errors.Is(err, store.ErrNotFound) && known != nil {
		return run, nil
	}
	if errors.Is(err, store.ErrNotFound) {
		return store.Run{}, notFound("run " + id)
	}
	var sub event.Submitted
	if err == nil {
		err = json.Unmarshal(d.Value, &sub)
	}
	if err != nil {
		return store.Run{}, fmt.Errorf("read what was submitted as run %s: %w", id, err)
	}
	return record.Foresee(known, sub), nil
}

// completeness says what is stored of what a run wrote.
func (s *Server) completeness(ctx context.Context, run store.Run) (store.Completeness, error) {
	streams, err := s.store.Streams(ctx, run.ID)
	if err != nil {
		return store.Completeness{}, err
	}
	return store.Complete(run, streams), nil
}
