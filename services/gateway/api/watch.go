package api

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// changesPage is the number of changes read at once.
const changesPage = 200

// WatchRun implements bai.v1.RunService.
func (s *Server) WatchRun(req *baiv1.WatchRunRequest, stream grpc.ServerStreamingServer[baiv1.WatchRunResponse]) error {
	ctx, after := stream.Context(), req.GetAfterRevision()
	run, err := s.find(ctx, req)
	if err != nil {
		return err
	}
	if after < 0 || after > run.Revision {
		return rpc.InvalidArgument("after_revision", fmt.Sprintf("is %d, but the run has %d changes", after, run.Revision), "begin with 0")
	}
	if err := stream.SendHeader(nil); err != nil { // the header tells the client that the call has begun
		return err
	}
	for {
		changed := s.store.Changed(run.ID)
		finished, err := s.isFinished(ctx, run.ID)
		if err != nil {
			return err
		}
		next, ended, err := s.sendChanges(stream, run.ID, after)
		if err != nil || ended || finished { // after the run's end, sendChanges has sent every change
			return err
		}
		after = next
		if err := rpc.WaitForChange(ctx, changed); err != nil {
			return err
		}
	}
}

// sendChanges sends all changes after a revision, and returns the revision of the last
// one. It reports true once the last change of the run is sent. Late changes are not
// sent.
func (s *Server) sendChanges(stream grpc.ServerStreamingServer[baiv1.WatchRunResponse], run string, after int64) (int64, bool, error) {
	for {
		changes, err := s.store.Changes(stream.Context(), run, after, changesPage)
		if err != nil {
			return after, false, err
		}
		for _, c := range changes {
			if ended, err := sendChange(stream, c); ended || err != nil {
				return after, ended, err
			}
			after = c.Revision
		}
		if len(changes) < changesPage {
			return after, false, nil
		}
	}
}

// sendChange sends one change, unless the change is late, and reports whether no other
// change follows.
func sendChange(stream grpc.ServerStreamingServer[baiv1.WatchRunResponse], c store.Change) (bool, error) {
	if c.Late {
		return true, nil
	}
	return c.Phase == event.PhaseFinished, stream.Send(&baiv1.WatchRunResponse{Change: changeOf(c)})
}

// isFinished reports whether a run has finished.
func (s *Server) isFinished(ctx context.Context, id string) (bool, error) {
	run, err := s.run(ctx, id)
	return run.Phase == event.PhaseFinished, err
}
