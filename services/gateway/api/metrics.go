package api

import (
	"context"
	"encoding/base64"
	"encoding/json"

	"google.golang.org/grpc"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api/request"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// QueryMetrics implements bai.v1.RunService.
func (s *Server) QueryMetrics(req *baiv1.QueryMetricsRequest, stream grpc.ServerStreamingServer[baiv1.QueryMetricsResponse]) error {
	query := store.SampleQuery{Names: req.GetMetrics(), Since: request.Time(req.GetSince()), Until: request.Time(req.GetUntil())}
	m := &sampleSender{store: s.store, stream: stream, query: query, cursor: func(cursor string) string { return cursor }}
	if req.GetRun() != "" {
		return s.queryRun(req, m)
	}
	if req.GetFilter() == nil {
		return rpc.InvalidArgument("run", "is empty, and there is no filter",
			"give the ID or the name of a run, or a filter of runs, which may be empty for all")
	}
	if err := checkFilter(req.GetFilter()); err != nil {
		return err
	}
	return s.queryAll(req, m)
}

// queryRun sends the samples of one run.
func (s *Server) queryRun(req *baiv1.QueryMetricsRequest, m *sampleSender) error {
	run, err := s.find(m.stream.Context(), req)
	if err != nil {
		return err
	}
	m.query.Run = run.ID
	if err := m.send(req.GetCursor()); err != nil || m.sent {
		return err
	}
	// tells the client where to continue, also without samples
	return m.stream.Send(&baiv1.QueryMetricsResponse{Cursor: m.position.cursor, RunId: run.ID})
}

// queryAll sends the samples of all runs of a filter, run by run. It reads one run at a
// time, so that the cursor can point behind each run.
func (s *Server) queryAll(req *baiv1.QueryMetricsRequest, m *sampleSender) error {
	ctx, filter := m.stream.Context(), filterOf(req.GetFilter())
	at, err := parseRunsCursor(req.GetCursor())
	if err != nil {
		return err
	}
	m.cursor = func(cursor string) string {
		at.Samples = cursor
		return at.encode()
	}
	for {
		if at.Run == "" && !at.Last {
			if err := s.nextRun(ctx, filter, &at); err != nil {
				return err
			}
		}
		if at.Run == "" {
			break
		}
		m.query.Run = at.Run
		if err := m.send(at.Samples); err != nil {
			return err
		}
		at.Run, at.Samples = "", ""
	}
	if m.sent {
		return nil
	}
	return m.stream.Send(&baiv1.QueryMetricsResponse{Cursor: at.encode()})
}

// nextRun moves at to the next run of a filter, or to the end.
func (s *Server) nextRun(ctx context.Context, filter store.RunFilter, at *runsCursor) error {
	runs, token, err := s.store.Runs(ctx, filter, at.Token, 1)
	if err != nil {
		return err
	}
	at.Token, at.Last = token, token == ""
	if len(runs) > 0 {
		at.Run = runs[0].ID
	}
	return nil
}

// runsCursor is a position in the samples of many runs.
type runsCursor struct {
	Run     string `json:"r,omitempty"` // the run being read; empty between runs
	Samples string `json:"s,omitempty"` // position in the samples of Run
	Token   string `json:"t,omitempty"` // token of the page of runs that follows
	Last    bool   `json:"l,omitempty"` // no run follows
}

func (a runsCursor) encode() string {
	b, err := json.Marshal(a)
	if err != nil {
		return "" // strings always have a JSON form
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseRunsCursor decodes a cursor. The error is store.ErrCursor for text that is no
// cursor.
func parseRunsCursor(cursor string) (runsCursor, error) {
	var a runsCursor
	if cursor == "" {
		return a, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || json.Unmarshal(b, &a) != nil {
		return runsCursor{}, store.ErrCursor
	}
	return a, nil
}

// sampleSender sends samples, page by page.
type sampleSender struct {
	store    Store
	stream   grpc.ServerStreamingServer[baiv1.QueryMetricsResponse]
	query    store.SampleQuery
	cursor   func(cursor string) string // turns a position in one run into the client's cursor
	position pageCursor
	sent     bool
}

// send sends the query's samples after a cursor.
func (m *sampleSender) send(cursor string) error {
	m.position = pageCursor{cursor, streamPage}
	read := func(cursor string, limit int) ([]store.Sample, string, error) {
		return m.store.Samples(m.stream.Context(), m.query, cursor, limit)
	}
	for more := true; more; {
		var resp *baiv1.QueryMetricsResponse
		var err error
		if resp, more, err = readPage(&m.position, read, m.response); err != nil {
			return err
		}
		if len(resp.GetSamples()) == 0 {
			continue
		}
		if err := m.stream.Send(resp); err != nil {
			return err
		}
		m.sent = true
	}
	return nil
}

func (m *sampleSender) response(page []store.Sample, cursor string) *baiv1.QueryMetricsResponse {
	resp := &baiv1.QueryMetricsResponse{Cursor: m.cursor(cursor), RunId: m.query.Run}
	for _, sample := range page {
		resp.Samples = append(resp.Samples, sampleOf(sample))
	}
	return resp
}
