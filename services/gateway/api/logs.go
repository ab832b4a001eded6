package api

import (
	"context"
	"time"

	"google.golang.org/grpc"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// StreamLogs implements bai.v1.RunService.
func (s *Server) StreamLogs(req *baiv1.StreamLogsRequest, stream grpc.ServerStreamingServer[baiv1.StreamLogsResponse]) error {
	if req.GetTail() < 0 || req.GetAttempt() < 0 {
		return invalidArgument("tail", "or attempt is less than 0", "leave it out for all")
	}
	run, err := s.find(stream.Context(), req)
	if err != nil {
		return err
	}
	if err := stream.SendHeader(nil); err != nil { // the client may know that it is being served
		return err
	}
	l := &lines{
		server: s, stream: stream, container: req.GetContainer(), at: place{req.GetCursor(), streamPage},
		query: store.LineQuery{Run: run.ID, Attempt: int(req.GetAttempt()), Last: int(req.GetTail()), Since: timeFrom(req.GetSince())},
	}
	if req.GetFollow() {
		err = l.follow(stream.Context())
	} else {
		err = l.drain(stream.Context())
	}
	if err != nil || l.sent {
		return err
	}
	return stream.Send(&baiv1.StreamLogsResponse{Cursor: l.at.cursor}) // no line has said where to go on
}

// lines sends the lines of a run.
type lines struct {
	server    *Server
	stream    grpc.ServerStreamingServer[baiv1.StreamLogsResponse]
	query     store.LineQuery
	container string // only its lines; empty means all
	at        place
	sent      bool
}

// follow sends lines until all are sent that there will ever be.
func (l *lines) follow(ctx context.Context) error {
	for {
		changed := l.server.store.Changed(l.query.Run)
		written, err := l.server.written(ctx, l.query.Run)
		if err != nil {
			return err
		}
		if err := l.drain(ctx); err != nil || written {
			return err
		}
		if err := wait(ctx, changed); err != nil {
			return err
		}
	}
}

// drain sends all lines that are there now.
func (l *lines) drain(ctx context.Context) error {
	read := func(cursor string, limit int) ([]store.Line, string, error) {
		return l.server.store.Lines(ctx, l.query, cursor, limit)
	}
	for more := true; more; {
		var resp *baiv1.StreamLogsResponse
		var err error
		if resp, more, err = page(&l.at, read, l.response); err != nil {
			return err
		}
		if len(resp.GetLines()) == 0 {
			continue
		}
		if err := l.stream.Send(resp); err != nil {
			return err
		}
		l.sent = true
	}
	return nil
}

func (l *lines) response(page []store.Line, cursor string) *baiv1.StreamLogsResponse {
	resp := &baiv1.StreamLogsResponse{Cursor: cursor}
	for _, line := range page {
		if l.container == "" || l.container == line.Origin.Container {
			resp.Lines = append(resp.Lines, lineOf(line))
		}
	}
	return resp
}

// written reports whether all that a run wrote is stored or will never be: what
// is missing some time after the run's end does not come.
func (s *Server) written(ctx context.Context, id string) (bool, error) {
	run, err := s.run(ctx, id)
	if err != nil || run.Phase != event.PhaseFinished {
		return false, err
	}
	c, err := s.completeness(ctx, run)
	return c.Complete || time.Since(run.Updated) > s.settings.LogsTimeout, err
}
