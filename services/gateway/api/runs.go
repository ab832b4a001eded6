package api

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api/request"
	"github.com/benchmark-ai/bai/services/gateway/pin"
	"github.com/benchmark-ai/bai/services/gateway/projection"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// SubmitRun implements bai.v1.RunService.
func (s *Server) SubmitRun(ctx context.Context, req *baiv1.SubmitRunRequest) (*baiv1.SubmitRunResponse, error) {
	repeated, err := s.repeatedRun(ctx, req.GetRerunOf())
	if err != nil {
		return nil, err
	}
	asked := submit.Request{
		Key: req.GetIdempotencyKey(), Descriptor: req.GetDescriptorToml(), File: req.GetDescriptorFile(),
		Owner: request.Owner(ctx, req), Namespace: req.GetNamespace(), Name: req.GetName(), Labels: req.GetLabels(),
		Overrides: overridesFrom(req.GetOverrides()), Provenance: provenanceFrom(req.GetOrigination()), RerunOf: req.GetRerunOf(),
		Script: req.GetScriptSha256(), Compares: req.GetCompares(),
	}
	var gaps parser.Faults
	if asked.Compares != "" {
		var pinned []event.Override
		pinned, gaps = pinnedTo(repeated)
		asked.Overrides = append(asked.Overrides, pinned...)
	}
	acc, err := s.submitter.Submit(ctx, asked)
	if scheduled := new(submit.ScheduleError); errors.As(err, &scheduled) && s.schedules != nil {
		return s.submitSchedule(ctx, asked, scheduled)
	}
	if swept := new(submit.SetError); errors.As(err, &swept) && s.sets != nil {
		return s.submitSet(ctx, asked, swept)
	}
	if err != nil {
		return nil, err
	}
	return &baiv1.SubmitRunResponse{
		Result: &baiv1.SubmitRunResponse_RunId{RunId: acc.Run}, Repeated: acc.Repeated, Warnings: faultsOf(append(acc.Warnings, gaps...)),
	}, nil
}

// submitSchedule creates a schedule from a request whose descriptor has one.
func (s *Server) submitSchedule(
	ctx context.Context, req submit.Request, scheduled *submit.ScheduleError,
) (*baiv1.SubmitRunResponse, error) {
	one, repeated, err := s.schedules.Put(ctx, req, scheduled)
	if err != nil {
		return nil, err
	}
	return &baiv1.SubmitRunResponse{
		Result: &baiv1.SubmitRunResponse_ScheduleId{ScheduleId: one.ID}, Repeated: repeated, Warnings: faultsOf(scheduled.Warnings),
	}, nil
}

// submitSet creates a set from a request whose descriptor has a sweep.
func (s *Server) submitSet(ctx context.Context, req submit.Request, asked *submit.SetError) (*baiv1.SubmitRunResponse, error) {
	one, repeated, err := s.sets.Put(ctx, req, asked)
	if err != nil {
		return nil, err
	}
	return &baiv1.SubmitRunResponse{
		Result: &baiv1.SubmitRunResponse_SetId{SetId: one.ID}, Repeated: repeated, Warnings: faultsOf(asked.Warnings),
	}, nil
}

// repeatedRun returns the run that a rerun repeats, and refuses one that does not exist. It
// ignores text that does not have the form of an ID: submit reports that beside the other faults.
func (s *Server) repeatedRun(ctx context.Context, id string) (store.Run, error) {
	if !submit.IsRunID(id) {
		return store.Run{}, nil
	}
	run, err := s.run(ctx, strings.ToLower(id))
	if status.Code(err) == codes.NotFound {
		return run, rpc.InvalidArgument("rerun_of", "run "+id+" does not exist", "leave it out where the run is no repetition")
	}
	return run, err
}

// pinnedTo returns the overrides that hold a repetition to what a run had, and warnings of what may
// differ all the same.
func pinnedTo(run store.Run) (set []event.Override, gaps parser.Faults) {
	set, texts := pin.Overrides(run)
	for _, text := range texts {
		gaps = append(gaps, parser.Fault{
			Path: "rerun_of", Code: submit.CodeRerun,
			Message: "the repetition of run " + run.ID + " may differ: " + text, Warning: true,
		})
	}
	return set, gaps
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
		SystemSamples: c.System, Notes: c.Notes,
	}
	if run.Phase == event.PhaseFinished { // nothing is delivered before
		out.Owed, err = s.owed(ctx, run.ID)
	}
	return &baiv1.GetRunResponse{Run: out}, err
}

// ListRuns implements bai.v1.RunService.
func (s *Server) ListRuns(ctx context.Context, req *baiv1.ListRunsRequest) (*baiv1.ListRunsResponse, error) {
	limit, err := request.PageSize(req)
	if err == nil {
		err = checkFilter(req)
	}
	if err != nil {
		return nil, err
	}
	for filter := filterOf(req); ; limit /= 2 {
		runs, next, err := s.store.Runs(ctx, filter, req.GetPageToken(), limit)
		if errors.Is(err, store.ErrCursor) {
			return nil, request.InvalidPageToken(" for these filters")
		}
		if err != nil {
			return nil, err
		}
		resp := &baiv1.ListRunsResponse{NextPageToken: next}
		for _, r := range runs {
			r.Descriptor, r.Overrides = "", nil
			resp.Runs = append(resp.Runs, runOf(r))
		}
		if limit == 1 || proto.Size(resp) <= rpc.MaxResponse {
			return resp, nil
		}
	}
}

// maxFilterText is the maximum number of bytes in the text of a filter.
const maxFilterText = 1024

// checkFilter refuses a filter with values that this server does not know. Such a
// filter would match no run, or every run.
func checkFilter(req *baiv1.ListRunsRequest) error {
	for _, p := range req.GetPhases() {
		if _, known := baiv1.Phase_name[int32(p)]; !known || p == baiv1.Phase_PHASE_UNSPECIFIED {
			return rpc.InvalidArgument("phases", fmt.Sprintf("%s is not a phase that this server knows", p), "leave it out")
		}
	}
	for _, o := range req.GetOutcomes() {
		if _, known := baiv1.Outcome_name[int32(o)]; !known || o == baiv1.Outcome_OUTCOME_UNSPECIFIED {
			return rpc.InvalidArgument("outcomes", fmt.Sprintf("%s is not an outcome that this server knows", o), "leave it out")
		}
	}
	if _, known := baiv1.Order_name[int32(req.GetOrder())]; !known {
		return rpc.InvalidArgument("order", fmt.Sprintf("%s is not an order that this server knows", req.GetOrder()),
			"leave it out for the newest first")
	}
	if req.GetCell() != "" && req.GetSetId() == "" {
		return rpc.InvalidArgument("cell", "needs set_id: cells of several sets have one name", "give the ID of the set too")
	}
	if n := len(req.GetText()); n > maxFilterText {
		return rpc.InvalidArgument("text", fmt.Sprintf("has %d bytes, %d at most", n, maxFilterText), "")
	}
	return nil
}

// CancelRun implements bai.v1.RunService.
func (s *Server) CancelRun(ctx context.Context, req *baiv1.CancelRunRequest) (*baiv1.CancelRunResponse, error) {
	run, err := s.find(ctx, req)
	if err != nil {
		return nil, err
	}
	if run.Phase != event.PhaseFinished {
		if err := s.submitter.Cancel(ctx, run, request.Caller(ctx)); err != nil {
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
	return &baiv1.GetVersionResponse{Version: s.version.Version, Commit: s.version.Commit, Revision: baiv1.Revision}, nil
}

// runRequest is a request about one run.
type runRequest interface {
	GetRun() string
	GetOwner() string
}

// find returns the run that a request names, by its ID or by the name that its owner
// gave it. The error is NOT_FOUND if there is no such run.
func (s *Server) find(ctx context.Context, req runRequest) (store.Run, error) {
	ref := req.GetRun()
	if ref == "" {
		return store.Run{}, rpc.InvalidArgument("run", "is empty", "give the ID or the name of a run")
	}
	if submit.IsRunID(ref) {
		return s.run(ctx, strings.ToLower(ref))
	}
	id, err := s.submitter.RunByName(ctx, request.Owner(ctx, req), ref)
	if errors.Is(err, store.ErrNotFound) {
		return store.Run{}, rpc.NotFound(fmt.Sprintf("run %.100q of owner %.100q", ref, request.Owner(ctx, req)))
	}
	if err != nil {
		return store.Run{}, err
	}
	return s.run(ctx, id)
}

// run returns the projection of a run. If the projection does not have the submission
// yet, run adds it. The error is NOT_FOUND if the run was never submitted, or if its
// records were removed.
func (s *Server) run(ctx context.Context, id string) (store.Run, error) {
	run, err := s.store.Run(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return store.Run{}, err
	}
	if err == nil && run.Descriptor != "" {
		return run, nil
	}
	projected := &run
	if err != nil {
		projected = nil
	}
	sub, found, err := store.FindSubmission(ctx, s.store, id)
	switch {
	case err != nil:
		return store.Run{}, fmt.Errorf("read the submission of run %s: %w", id, err)
	case !found && projected != nil:
		return run, nil
	case !found:
		return store.Run{}, rpc.NotFound("run " + id)
	}
	return projection.WithSubmission(projected, sub), nil
}

// owed returns the destinations that lack the results of a run.
func (s *Server) owed(ctx context.Context, run string) ([]*baiv1.OwedDestination, error) {
	d, _, _, err := store.Find[store.Owed](ctx, s.store, store.KindOwed, run)
	if err != nil {
		return nil, err
	}
	var all []*baiv1.OwedDestination
	for _, to := range d.Destinations {
		all = append(all, &baiv1.OwedDestination{Name: to.Name, Since: timestamppb.New(d.Since), Error: to.Error})
	}
	return all, nil
}

// completeness reports how much of the output of a run is stored.
func (s *Server) completeness(ctx context.Context, run store.Run) (store.Completeness, error) {
	streams, err := s.store.Streams(ctx, run.ID)
	if err != nil {
		return store.Completeness{}, err
	}
	return store.Complete(run, streams), nil
}
