// Package sets has the handlers of bai.v1.SetService.
package sets

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/benchmark-ai/bai/descriptors/sweep"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api/message"
	"github.com/benchmark-ai/bai/services/gateway/api/request"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/gateway/set/results"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// Server implements bai.v1.SetService.
type Server struct {
	baiv1.UnimplementedSetServiceServer

	Sets *set.Sets
}

// ListSets implements bai.v1.SetService.
func (s *Server) ListSets(ctx context.Context, req *baiv1.ListSetsRequest) (*baiv1.ListSetsResponse, error) {
	after, limit, err := request.IDPage(req)
	if err != nil {
		return nil, err
	}
	all, err := s.Sets.List(ctx, after, limit+1, func(one set.Set) bool {
		return request.Wants(req, one.Owner, one.Namespace) && (req.GetScheduleId() == "" || one.Schedule == req.GetScheduleId())
	})
	if err != nil {
		return nil, err
	}
	resp := &baiv1.ListSetsResponse{}
	for i, one := range all {
		if out := setOf(one); i < limit && proto.Size(resp)+proto.Size(out) <= rpc.MaxResponse {
			resp.Sets = append(resp.Sets, out)
			continue
		}
		resp.NextPageToken = all[i-1].ID
		break
	}
	return resp, nil
}

// GetSet implements bai.v1.SetService.
func (s *Server) GetSet(ctx context.Context, req *baiv1.GetSetRequest) (*baiv1.GetSetResponse, error) {
	one, err := s.Sets.Find(ctx, request.Owner(ctx, req), req.GetSet())
	if err != nil {
		return nil, err
	}
	out := setOf(one)
	if out.DescriptorToml, err = s.Sets.Descriptor(ctx, one); err != nil {
		return nil, err
	}
	out.ActiveRuns = one.ActiveRuns()
	return &baiv1.GetSetResponse{Set: out}, nil
}

// ListCells implements bai.v1.SetService.
func (s *Server) ListCells(ctx context.Context, req *baiv1.ListCellsRequest) (*baiv1.ListCellsResponse, error) {
	limit, err := request.PageSize(req)
	if err != nil {
		return nil, err
	}
	one, err := s.Sets.Find(ctx, request.Owner(ctx, req), req.GetSet())
	if err != nil {
		return nil, err
	}
	for ; ; limit /= 2 {
		cells, next, err := s.Sets.Cells(ctx, one, req.GetPageToken(), limit)
		if err != nil {
			return nil, err
		}
		resp := &baiv1.ListCellsResponse{NextPageToken: next}
		for _, c := range cells {
			resp.Cells = append(resp.Cells, cellOf(c))
		}
		if limit == 1 || proto.Size(resp) <= rpc.MaxResponse {
			return resp, nil
		}
	}
}

// GetSetResults implements bai.v1.SetService.
func (s *Server) GetSetResults(ctx context.Context, req *baiv1.GetSetResultsRequest) (*baiv1.GetSetResultsResponse, error) {
	limit, err := request.PageSize(req)
	if err != nil {
		return nil, err
	}
	one, err := s.Sets.Find(ctx, request.Owner(ctx, req), req.GetSet())
	if err != nil {
		return nil, err
	}
	cells, next, err := s.Sets.Results(ctx, one, req.GetPageToken(), limit, req.GetMetrics())
	if err != nil {
		return nil, err
	}
	resp := &baiv1.GetSetResultsResponse{NextPageToken: next}
	size := 0
	for i, c := range cells {
		out := cellResultOf(c)
		if size += proto.Size(out); i > 0 && size > rpc.MaxResponse {
			resp.NextPageToken = c.Token()
			break
		}
		resp.Cells = append(resp.Cells, out)
	}
	return resp, nil
}

// WatchSet implements bai.v1.SetService.
func (s *Server) WatchSet(req *baiv1.WatchSetRequest, stream grpc.ServerStreamingServer[baiv1.WatchSetResponse]) error {
	ctx, after := stream.Context(), req.GetAfterRevision()
	one, err := s.Sets.Find(ctx, request.Owner(ctx, req), req.GetSet())
	if err != nil {
		return err
	}
	if after < 0 || after > one.Version {
		return rpc.InvalidArgument("after_revision", fmt.Sprintf("is %d, but the set has %d changes", after, one.Version), "begin with 0")
	}
	if err := stream.SendHeader(nil); err != nil { // the header tells the client that the call has begun
		return err
	}
	for {
		changed := s.Sets.Changed()
		finished, err := s.sendSet(stream, one.ID, &after)
		if err != nil || finished {
			return err
		}
		if err := rpc.WaitForChange(ctx, changed); err != nil {
			return err
		}
	}
}

// sendSet sends a set if its revision is greater than after, sets after to that, and reports
// whether the set has finished.
func (s *Server) sendSet(stream grpc.ServerStreamingServer[baiv1.WatchSetResponse], id string, after *int64) (finished bool, err error) {
	one, err := s.Sets.Find(stream.Context(), "", id)
	if err == nil && one.Version > *after {
		*after = one.Version
		err = stream.Send(&baiv1.WatchSetResponse{Set: setOf(one)})
	}
	return one.State == set.StateFinished, err
}

// CancelSet implements bai.v1.SetService.
func (s *Server) CancelSet(ctx context.Context, req *baiv1.CancelSetRequest) (*baiv1.CancelSetResponse, error) {
	one, err := s.Sets.Cancel(ctx, request.Owner(ctx, req), req.GetSet(), request.Caller(ctx))
	if err != nil {
		return nil, err
	}
	return &baiv1.CancelSetResponse{Set: setOf(one)}, nil
}

// ResumeSet implements bai.v1.SetService.
func (s *Server) ResumeSet(ctx context.Context, req *baiv1.ResumeSetRequest) (*baiv1.ResumeSetResponse, error) {
	one, err := s.Sets.Resume(ctx, request.Owner(ctx, req), req.GetSet())
	if err != nil {
		return nil, err
	}
	return &baiv1.ResumeSetResponse{Set: setOf(one)}, nil
}

// RerunSet implements bai.v1.SetService.
func (s *Server) RerunSet(ctx context.Context, req *baiv1.RerunSetRequest) (*baiv1.RerunSetResponse, error) {
	one, err := s.Sets.Rerun(ctx, request.Owner(ctx, req), req.GetSet(),
		set.Rerun{Owner: request.Caller(ctx), Key: req.GetIdempotencyKey(), Failed: req.GetFailed()})
	if err != nil {
		return nil, err
	}
	return &baiv1.RerunSetResponse{Set: setOf(one)}, nil
}

// setOf returns a set as a message of the API, without its descriptor and active runs.
func setOf(s set.Set) *baiv1.Set {
	out := &baiv1.Set{
		Id: s.ID, Name: s.Name, Namespace: s.Namespace, Owner: s.Owner, Labels: s.Labels,
		Description: s.Description, DescriptorFile: s.File,
		CellCount: message.Int32(s.Cells), RunCount: message.Int32(s.Runs), Repetitions: message.Int32(s.Repetitions),
		Warmup: message.Int32(s.Warmup), Order: s.Order,
		MaxParallel: message.Int32(s.Parallel()), OnFailure: s.OnFailure,
		State: setStateOf(s.State), Outcome: message.Outcome(s.Outcome), Message: s.Message, CanceledBy: s.CanceledBy,
		Submitted: message.Int32(s.Submitted()), Active: message.Int32(len(s.ActiveRuns())),
		Succeeded: message.Int32(s.Counts.Succeeded), Failed: message.Int32(s.Counts.Failed), Canceled: message.Int32(s.Counts.Canceled),
		FailureClasses: classCounts(s.Counts.Classes),
		CreateTime:     message.Time(s.Created), UpdateTime: message.Time(s.Updated), EndTime: message.Time(s.Ended), Revision: s.Version,
		ScheduleId: s.Schedule, FiringTime: message.Time(s.Firing), EntryCount: message.Int32(s.Entries),
	}
	out.Skipped, out.StopMessage, out.RerunOfSet = message.Int32(s.Skipped), s.StopMessage, s.RerunOf
	if end, known := s.EstimatedEnd(); known {
		out.EstimatedEndTime = message.Time(end)
	}
	if w := s.StopWhen; w != nil {
		out.StopWhen = &baiv1.StopWhen{Metric: w.Metric, HalfWidth: w.HalfWidth, Min: message.Int32(w.Min), Max: message.Int32(w.Max)}
	}
	for _, f := range s.Failures {
		out.Failures = append(out.Failures, &baiv1.SetFailure{
			RunId: f.Run, Cell: f.Cell, Repetition: message.Int32(f.Repetition), Warmup: f.Warmup, Message: f.Message,
		})
	}
	return out
}

func setStateOf(s set.State) baiv1.SetState {
	return baiv1.SetState(baiv1.SetState_value["SET_STATE_"+strings.ToUpper(string(s))])
}

func classCounts(all map[event.Class]int) map[string]int32 {
	if len(all) == 0 {
		return nil
	}
	out := make(map[string]int32, len(all))
	for class, n := range all {
		out[string(class)] = message.Int32(n)
	}
	return out
}

func cellOf(c set.CellRuns) *baiv1.Cell {
	out := &baiv1.Cell{
		Id: c.ID, Name: c.Name, Parameters: parametersOf(c.Cell), Skipped: message.Int32(c.Skipped),
		Repetitions: message.Int32(c.Counted), Warmup: message.Int32(c.Warmups),
		Selected: runNumbersOf(c.Selected), Refused: runNumbersOf(c.Refused),
	}
	for _, r := range c.Runs {
		out.Runs = append(out.Runs, &baiv1.CellRun{
			RunId: r.ID, Repetition: message.Int32(r.Repetition), Warmup: r.Warmup, Phase: message.Phase(r.Phase),
			Outcome: message.Outcome(r.Outcome), FailureClass: message.Class(r.Class),
		})
	}
	return out
}

func runNumbersOf(n *set.RunNumbers) *baiv1.RunNumbers {
	if n == nil {
		return nil
	}
	return &baiv1.RunNumbers{Repetitions: int32s(n.Repetitions), Warmups: int32s(n.Warmups)}
}

func int32s(all []int) []int32 {
	out := make([]int32, len(all))
	for i, n := range all {
		out[i] = message.Int32(n)
	}
	return out
}

func parametersOf(c sweep.Cell) []*baiv1.CellParameter {
	var out []*baiv1.CellParameter
	for _, p := range c.Parameters {
		out = append(out, &baiv1.CellParameter{Name: p.Name, Value: p.Text})
	}
	return out
}

func cellResultOf(c results.CellResults) *baiv1.CellResult {
	out := &baiv1.CellResult{
		Id: c.ID, Name: c.Name, Parameters: parametersOf(c.Cell),
		Succeeded: message.Int32(c.Succeeded), Unsummarised: message.Int32(c.Unsummarised), Incomplete: message.Int32(c.Incomplete),
		Skipped: message.Int32(c.Skipped), NotSelected: c.NotSelected,
	}
	for i := range c.Metrics {
		out.Metrics = append(out.Metrics, metricResultOf(&c.Metrics[i]))
	}
	return out
}

func metricResultOf(m *results.MetricResult) *baiv1.MetricResult {
	out := &baiv1.MetricResult{
		Metric: m.Metric, Unit: m.Unit, Labels: m.Labels, Direction: string(m.Direction),
		N: message.Int32(m.N), Excluded: message.Int32(m.Excluded), Median: m.Median, Lacking: message.Int32(m.Lacking),
	}
	if i := m.Interval; i != nil {
		out.Interval = &baiv1.Interval{Low: i.Low, High: i.High, Level: i.Level}
	}
	for _, v := range m.Values {
		out.Values = append(out.Values, &baiv1.RepetitionValue{Repetition: message.Int32(v.Repetition), Value: v.Value})
	}
	return out
}
