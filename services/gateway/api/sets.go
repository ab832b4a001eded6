package api

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/benchmark-ai/bai/descriptors/sweep"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// setServer implements bai.v1.SetService.
type setServer struct {
	baiv1.UnimplementedSetServiceServer

	sets *set.Sets
}

// ListSets implements bai.v1.SetService.
func (s *setServer) ListSets(ctx context.Context, req *baiv1.ListSetsRequest) (*baiv1.ListSetsResponse, error) {
	after, limit, err := idPage(req)
	if err != nil {
		return nil, err
	}
	all, err := s.sets.List(ctx, after, limit+1, func(one set.Set) bool {
		return wantsOwned(req, one.Owner, one.Namespace) && (req.GetScheduleId() == "" || one.Schedule == req.GetScheduleId())
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
func (s *setServer) GetSet(ctx context.Context, req *baiv1.GetSetRequest) (*baiv1.GetSetResponse, error) {
	one, err := s.sets.Find(ctx, owner(ctx, req), req.GetSet())
	if err != nil {
		return nil, err
	}
	out := setOf(one)
	if out.DescriptorToml, err = s.sets.Descriptor(ctx, one); err != nil {
		return nil, err
	}
	out.ActiveRuns = one.ActiveRuns()
	return &baiv1.GetSetResponse{Set: out}, nil
}

// ListCells implements bai.v1.SetService.
func (s *setServer) ListCells(ctx context.Context, req *baiv1.ListCellsRequest) (*baiv1.ListCellsResponse, error) {
	limit, err := pageSize(req)
	if err != nil {
		return nil, err
	}
	one, err := s.sets.Find(ctx, owner(ctx, req), req.GetSet())
	if err != nil {
		return nil, err
	}
	for ; ; limit /= 2 {
		cells, next, err := s.sets.Cells(ctx, one, req.GetPageToken(), limit)
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
func (s *setServer) GetSetResults(ctx context.Context, req *baiv1.GetSetResultsRequest) (*baiv1.GetSetResultsResponse, error) {
	limit, err := pageSize(req)
	if err != nil {
		return nil, err
	}
	one, err := s.sets.Find(ctx, owner(ctx, req), req.GetSet())
	if err != nil {
		return nil, err
	}
	cells, next, err := s.sets.Results(ctx, one, req.GetPageToken(), limit, req.GetMetrics())
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
func (s *setServer) WatchSet(req *baiv1.WatchSetRequest, stream grpc.ServerStreamingServer[baiv1.WatchSetResponse]) error {
	ctx, after := stream.Context(), req.GetAfterRevision()
	one, err := s.sets.Find(ctx, owner(ctx, req), req.GetSet())
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
		changed := s.sets.Changed()
		finished, err := s.sendSet(stream, one.ID, &after)
		if err != nil || finished {
			return err
		}
		if err := waitForChange(ctx, changed); err != nil {
			return err
		}
	}
}

// sendSet sends a set if its revision is greater than after, sets after to that, and reports
// whether the set has finished.
func (s *setServer) sendSet(stream grpc.ServerStreamingServer[baiv1.WatchSetResponse], id string, after *int64) (finished bool, err error) {
	one, err := s.sets.Find(stream.Context(), "", id)
	if err == nil && one.Version > *after {
		*after = one.Version
		err = stream.Send(&baiv1.WatchSetResponse{Set: setOf(one)})
	}
	return one.State == set.StateFinished, err
}

// CancelSet implements bai.v1.SetService.
func (s *setServer) CancelSet(ctx context.Context, req *baiv1.CancelSetRequest) (*baiv1.CancelSetResponse, error) {
	one, err := s.sets.Cancel(ctx, owner(ctx, req), req.GetSet(), caller(ctx))
	if err != nil {
		return nil, err
	}
	return &baiv1.CancelSetResponse{Set: setOf(one)}, nil
}

// ResumeSet implements bai.v1.SetService.
func (s *setServer) ResumeSet(ctx context.Context, req *baiv1.ResumeSetRequest) (*baiv1.ResumeSetResponse, error) {
	one, err := s.sets.Resume(ctx, owner(ctx, req), req.GetSet())
	if err != nil {
		return nil, err
	}
	return &baiv1.ResumeSetResponse{Set: setOf(one)}, nil
}

// RerunSet implements bai.v1.SetService.
func (s *setServer) RerunSet(ctx context.Context, req *baiv1.RerunSetRequest) (*baiv1.RerunSetResponse, error) {
	one, err := s.sets.Rerun(ctx, owner(ctx, req), req.GetSet(), set.Rerun{Owner: caller(ctx), Key: req.GetIdempotencyKey(), Failed: req.GetFailed()})
	if err != nil {
		return nil, err
	}
	return &baiv1.RerunSetResponse{Set: setOf(one)}, nil
}

// setOf returns a set as a message of the API, without its descriptor and active runs.
func setOf(s set.Set) *baiv1.Set {
	out := &baiv1.Set{
		Id: s.ID, Name: s.Name, Namespace: s.Namespace, Owner: s.Owner, Labels: s.Labels, Description: s.Description, DescriptorFile: s.File,
		CellCount: int32Of(s.Cells), RunCount: int32Of(s.Runs), Repetitions: int32Of(s.Repetitions), Warmup: int32Of(s.Warmup), Order: s.Order,
		MaxParallel: int32Of(s.MaxParallel), OnFailure: s.OnFailure,
		State: setStateOf(s.State), Outcome: outcomeOf(s.Outcome), Message: s.Message, CanceledBy: s.CanceledBy,
		Submitted: int32Of(s.Submitted()), Active: int32Of(len(s.ActiveRuns())),
		Succeeded: int32Of(s.Counts.Succeeded), Failed: int32Of(s.Counts.Failed), Canceled: int32Of(s.Counts.Canceled), FailureClasses: classCounts(s.Counts.Classes),
		CreateTime: timeOf(s.Created), UpdateTime: timeOf(s.Updated), EndTime: timeOf(s.Ended), Revision: s.Version,
		ScheduleId: s.Schedule, FiringTime: timeOf(s.Firing), EntryCount: int32Of(s.Entries),
	}
	out.Skipped, out.StopMessage, out.RerunOfSet = int32Of(s.Skipped), s.StopMessage, s.RerunOf
	if end, known := s.EstimatedEnd(); known {
		out.EstimatedEndTime = timeOf(end)
	}
	if w := s.StopWhen; w != nil {
		out.StopWhen = &baiv1.StopWhen{Metric: w.Metric, HalfWidth: w.HalfWidth, Min: int32Of(w.Min), Max: int32Of(w.Max)}
	}
	for _, f := range s.Failures {
		out.Failures = append(out.Failures, &baiv1.SetFailure{
			RunId: f.Run, Cell: f.Cell, Repetition: int32Of(f.Repetition), Warmup: f.Warmup, Message: f.Message,
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
		out[string(class)] = int32Of(n)
	}
	return out
}

func cellOf(c set.CellRuns) *baiv1.Cell {
	out := &baiv1.Cell{Id: c.ID, Name: c.Name, Parameters: parametersOf(c.Cell), Skipped: int32Of(c.Skipped), Repetitions: int32Of(c.Counted), Warmup: int32Of(c.Warmups)}
	for _, r := range c.Runs {
		out.Runs = append(out.Runs, &baiv1.CellRun{
			RunId: r.ID, Repetition: int32Of(r.Repetition), Warmup: r.Warmup, Phase: phaseOf(r.Phase), Outcome: outcomeOf(r.Outcome), FailureClass: classOf(r.Class),
		})
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

func cellResultOf(c set.CellResults) *baiv1.CellResult {
	out := &baiv1.CellResult{
		Id: c.ID, Name: c.Name, Parameters: parametersOf(c.Cell),
		Succeeded: int32Of(c.Succeeded), Unsummarised: int32Of(c.Unsummarised), Incomplete: int32Of(c.Incomplete), Skipped: int32Of(c.Skipped),
	}
	for i := range c.Metrics {
		out.Metrics = append(out.Metrics, metricResultOf(&c.Metrics[i]))
	}
	return out
}

func metricResultOf(m *set.MetricResult) *baiv1.MetricResult {
	out := &baiv1.MetricResult{
		Metric: m.Metric, Unit: m.Unit, Labels: m.Labels, Direction: string(m.Direction),
		N: int32Of(m.N), Excluded: int32Of(m.Excluded), Median: m.Median, Lacking: int32Of(m.Lacking),
	}
	if i := m.Interval; i != nil {
		out.Interval = &baiv1.Interval{Low: i.Low, High: i.High, Level: i.Level}
	}
	for _, v := range m.Values {
		out.Values = append(out.Values, &baiv1.RepetitionValue{Repetition: int32Of(v.Repetition), Value: v.Value})
	}
	return out
}
