package api

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api/request"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// StreamLogs implements bai.v1.RunService.
func (s *Server) StreamLogs(req *baiv1.StreamLogsRequest, stream grpc.ServerStreamingServer[baiv1.StreamLogsResponse]) error {
	if req.GetTail() < 0 || req.GetAttempt() < 0 {
		return rpc.InvalidArgument("tail", "or attempt is less than 0", "leave it out for all")
	}
	words, err := searchTerms(req.GetSearch())
	if err != nil {
		return err
	}
	run, err := s.find(stream.Context(), req)
	if err != nil {
		return err
	}
	if err := stream.SendHeader(nil); err != nil { // the header tells the client that the call has begun
		return err
	}
	l := &logSender{
		server: s, stream: stream, position: pageCursor{req.GetCursor(), streamPage}, lastSeq: make(map[string]int64),
		query: store.LineQuery{
			Run: run.ID, Attempt: int(req.GetAttempt()), Container: req.GetContainer(), Tokens: words, Last: int(req.GetTail()),
			Since: request.Time(req.GetSince()),
		},
	}
	if req.GetFollow() {
		err = l.follow(stream.Context())
	} else {
		err = l.drain(stream.Context())
	}
	if err != nil || l.sent {
		return err
	}
	return stream.Send(&baiv1.StreamLogsResponse{Cursor: l.position.cursor}) // without lines, this response carries the cursor
}

// searchTerms returns the words of a search.
func searchTerms(search string) ([]string, error) {
	words := store.Words(search)
	switch {
	case search != "" && len(words) == 0:
		return nil, rpc.InvalidArgument("search", "has neither a letter nor a digit",
			"give words that lines have, or leave it out for all lines")
	case len(words) > store.MaxWords:
		return nil, rpc.InvalidArgument("search", fmt.Sprintf("has %d words", len(words)), fmt.Sprintf("give %d at most", store.MaxWords))
	}
	return words, nil
}

// logSender sends the lines of a run.
type logSender struct {
	server   *Server
	stream   grpc.ServerStreamingServer[baiv1.StreamLogsResponse]
	query    store.LineQuery
	position pageCursor
	sent     bool
	lastSeq  map[string]int64 // sequence number of the last line read, by stream
}

// follow sends lines until the run's output is complete and sent.
func (l *logSender) follow(ctx context.Context) error {
	var t followState
	for {
		changed := l.server.store.Changed(l.query.Run)
		streams, err := l.server.observeStreams(ctx, l.query.Run, &t)
		if err != nil {
			return err
		}
		if err := l.drain(ctx); err != nil {
			return err
		}
		if t.complete() {
			done, err := l.sendRest(ctx, streams)
			if err != nil || done || t.readTimedOut(time.Now(), l.server.settings.LogsTimeout) {
				return err
			}
		}
		if err := rpc.WaitForChange(ctx, changed); err != nil {
			return err
		}
	}
}

// sendRest sends the remaining lines and reports whether the last line of each stream
// is sent. Streams and Lines may read different replicas of the store, one of which
// lags behind. If another call has sent the last line, or the query excludes it, it is
// enough that the line can be read.
func (l *logSender) sendRest(ctx context.Context, streams []store.Stream) (bool, error) {
	skipped := false
	for _, s := range streams {
		id := s.Origin.StreamID()
		if last, ok := l.lastSeq[id]; s.Topic != event.TopicLogs || !l.query.Matches(s.Origin) || s.Last < 0 || ok && last >= s.Last {
			continue
		}
		tail, _, err := l.server.store.Lines(ctx, store.LineQuery{Run: l.query.Run, StreamID: id, Last: 1}, "", 1)
		if err != nil || len(tail) == 0 || tail[0].Seq < s.Last {
			return false, err
		}
		skipped = true
	}
	if skipped {
		return true, l.drain(ctx)
	}
	return true, nil
}

// drain sends all lines that are stored now.
func (l *logSender) drain(ctx context.Context) error {
	read := func(cursor string, limit int) ([]store.Line, string, error) {
		return l.server.store.Lines(ctx, l.query, cursor, limit)
	}
	for more := true; more; {
		var resp *baiv1.StreamLogsResponse
		var err error
		if resp, more, err = readPage(&l.position, read, l.response); err != nil {
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

func (l *logSender) response(page []store.Line, cursor string) *baiv1.StreamLogsResponse {
	resp := &baiv1.StreamLogsResponse{Cursor: cursor}
	for _, line := range page {
		resp.Lines = append(resp.Lines, lineOf(line))
		l.lastSeq[line.Origin.StreamID()] = line.Seq // a page that does not fit is read again
	}
	return resp
}

// observeStreams updates t from the stored streams of a run, and returns the streams.
func (s *Server) observeStreams(ctx context.Context, id string, t *followState) ([]store.Stream, error) {
	run, err := s.run(ctx, id)
	if err != nil {
		return nil, err
	}
	streams, err := s.store.Streams(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	t.observe(run, streams, time.Now(), s.settings.LogsTimeout)
	return streams, nil
}
