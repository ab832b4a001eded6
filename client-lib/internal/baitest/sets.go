package baitest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/suite"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// storedSet is a set with its cells.
type storedSet struct {
	set     *baiv1.Set
	cells   []*baiv1.Cell
	results []*baiv1.CellResult
	states  []*baiv1.Set // the set after each change; its revision is the number of states
}

// activeRuns returns how many runs of a set are active at most.
func activeRuns(asked int) int32 {
	return int32(min(cmp.Or(asked, descriptors.DefaultActiveRuns), descriptors.MaxActiveRuns))
}

// apply changes the set.
func (s *storedSet) apply(change func(*baiv1.Set)) {
	change(s.set)
	s.set.Revision = int64(len(s.states) + 1)
	s.states = append(s.states, withoutDetails(s.set))
}

// AddSet adds a set with its cells.
func (p *Platform) AddSet(s *baiv1.Set, cells ...*baiv1.Cell) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addSet(&storedSet{set: s, cells: cells})
}

func (p *Platform) addSet(s *storedSet) {
	s.apply(func(*baiv1.Set) {})
	p.sets = append(p.sets, s)
	slices.SortFunc(p.sets, func(a, b *storedSet) int { return cmp.Compare(a.set.GetId(), b.set.GetId()) })
	p.notifyWaiters()
}

// ChangeSet changes a set. It does nothing if there is no set with that ID.
func (p *Platform) ChangeSet(id string, change func(*baiv1.Set)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sets {
		if s.set.GetId() == id {
			s.apply(change)
		}
	}
	p.notifyWaiters()
}

// SetResults sets the results of a set. It does nothing if there is no set with that ID.
func (p *Platform) SetResults(id string, cells ...*baiv1.CellResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sets {
		if s.set.GetId() == id {
			s.results = cells
		}
	}
}

// setService is the part of a platform that has sets.
type setService struct {
	baiv1.UnimplementedSetServiceServer

	p *Platform
}

// submitSet makes the set that a submission asks for, if it asks for one. Each idempotency
// key has one.
func (p *Platform) submitSet(req *baiv1.SubmitRunRequest, text string) (*baiv1.SubmitRunResponse, bool) {
	d, _, _ := suite.ParseWith(parser.Parser{}, req.GetDescriptorFile(), []byte(text), nil)
	if d == nil || d.Sweep == nil {
		return nil, false
	}
	plan, _ := suite.ReadPlan(parser.Parser{}, req.GetDescriptorFile(), []byte(text))
	if plan == nil {
		return nil, false
	}
	id := fmt.Sprintf("6sss%022d", len(p.sets)+1)
	s := &storedSet{set: &baiv1.Set{
		Id: id, Name: req.GetName(), Owner: req.GetOwner(), Namespace: cmp.Or(req.GetNamespace(), "default"),
		Labels: req.GetLabels(), Description: d.Info.Description, DescriptorFile: req.GetDescriptorFile(), DescriptorToml: text,
		EntryCount: int32(plan.Entries()), CellCount: int32(plan.Cells()), RunCount: int32(plan.Runs()),
		Repetitions: int32(d.Sweep.Repetitions), Warmup: int32(d.Sweep.Warmup),
		Order: string(d.Sweep.Order), MaxParallel: activeRuns(d.Sweep.MaxParallel), OnFailure: d.Sweep.OnFailure,
		State: baiv1.SetState_SET_STATE_RUNNING, CreateTime: timestamppb.New(p.now), UpdateTime: timestamppb.New(p.now),
	}}
	if w := d.Sweep.StopWhen; w != nil {
		s.set.StopWhen = &baiv1.StopWhen{Metric: w.Metric, HalfWidth: w.HalfWidth, Min: int32(w.Min), Max: int32(w.Max)}
	}
	for i := range plan.Cells() {
		c := plan.Cell(i)
		cell := &baiv1.Cell{Id: c.ID, Name: c.Name, Repetitions: int32(plan.Repetitions(i)), Warmup: int32(plan.Warmup(i))}
		for _, v := range c.Parameters {
			cell.Parameters = append(cell.Parameters, &baiv1.CellParameter{Name: v.Name, Value: v.Text})
		}
		s.cells = append(s.cells, cell)
	}
	p.addSet(s)
	if f := p.onSubmit; f != nil {
		p.work.Go(func() { f(id) })
	}
	return &baiv1.SubmitRunResponse{Result: &baiv1.SubmitRunResponse_SetId{SetId: id}}, true
}

func (c setService) find(ref, owner string) (*storedSet, error) {
	for _, s := range c.p.sets {
		if s.set.GetId() == ref || s.set.GetName() == ref && s.set.GetOwner() == owner {
			return s, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "set %q of owner %q does not exist", ref, owner)
}

// ListSets returns pages of one, so that there are several.
func (c setService) ListSets(_ context.Context, req *baiv1.ListSetsRequest) (*baiv1.ListSetsResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	res := &baiv1.ListSetsResponse{}
	for _, s := range c.p.sets {
		switch {
		case req.GetScheduleId() != "" && req.GetScheduleId() != s.set.GetScheduleId():
		case s.set.GetId() <= req.GetPageToken(), req.GetOwner() != "" && req.GetOwner() != s.set.GetOwner(), req.GetNamespace() != "" &&
			req.GetNamespace() != s.set.GetNamespace():
		case len(res.GetSets()) == 0:
			res.Sets = append(res.Sets, withoutDetails(s.set))
		default:
			res.NextPageToken = res.GetSets()[0].GetId()
		}
	}
	return res, nil
}

// withoutDetails is a set without what only GetSet returns.
func withoutDetails(s *baiv1.Set) *baiv1.Set {
	s = proto.CloneOf(s)
	s.DescriptorToml, s.ActiveRuns = "", nil
	return s
}

// GetSet returns a set.
func (c setService) GetSet(_ context.Context, req *baiv1.GetSetRequest) (*baiv1.GetSetResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	s, err := c.find(req.GetSet(), req.GetOwner())
	if err != nil {
		return nil, err
	}
	return &baiv1.GetSetResponse{Set: proto.CloneOf(s.set)}, nil
}

// ListCells returns one run a page, and the cell of that, so that cells are continued.
func (c setService) ListCells(_ context.Context, req *baiv1.ListCellsRequest) (*baiv1.ListCellsResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	s, err := c.find(req.GetSet(), req.GetOwner())
	if err != nil {
		return nil, err
	}
	var pages []*baiv1.Cell
	for _, cell := range s.cells {
		empty := proto.CloneOf(cell)
		empty.Runs = nil
		if len(cell.GetRuns()) == 0 {
			pages = append(pages, empty)
		}
		for _, run := range cell.GetRuns() {
			page := proto.CloneOf(empty)
			page.Runs = []*baiv1.CellRun{proto.CloneOf(run)}
			pages = append(pages, page)
		}
	}
	at, _ := strconv.Atoi(req.GetPageToken()) // empty: 0
	res := &baiv1.ListCellsResponse{Cells: pages[min(at, len(pages)):min(at+1, len(pages))]}
	if at+1 < len(pages) {
		res.NextPageToken = strconv.Itoa(at + 1)
	}
	return res, nil
}

// GetSetResults returns one cell a page, with the metrics that were asked for.
func (c setService) GetSetResults(_ context.Context, req *baiv1.GetSetResultsRequest) (*baiv1.GetSetResultsResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	s, err := c.find(req.GetSet(), req.GetOwner())
	if err != nil {
		return nil, err
	}
	at, _ := strconv.Atoi(req.GetPageToken()) // empty: 0
	res := &baiv1.GetSetResultsResponse{}
	for _, cell := range s.results[min(at, len(s.results)):min(at+1, len(s.results))] {
		cell = proto.CloneOf(cell)
		cell.Metrics = slices.DeleteFunc(cell.GetMetrics(), func(m *baiv1.MetricResult) bool {
			return len(req.GetMetrics()) > 0 && !slices.Contains(req.GetMetrics(), m.GetMetric())
		})
		res.Cells = append(res.Cells, cell)
	}
	if at+1 < len(s.results) {
		res.NextPageToken = strconv.Itoa(at + 1)
	}
	return res, nil
}

// WatchSet sends a set after each change, once and in order.
func (c setService) WatchSet(req *baiv1.WatchSetRequest, stream grpc.ServerStreamingServer[baiv1.WatchSetResponse]) error {
	if err := stream.SendHeader(nil); err != nil { // the client may know that it is being served
		return err
	}
	for next := int(req.GetAfterRevision()); ; {
		states, changed, err := c.statesAfter(req, next)
		if err != nil {
			return err
		}
		for _, now := range states {
			if err := stream.Send(&baiv1.WatchSetResponse{Set: now}); err != nil {
				return err
			}
			if now.GetState() == baiv1.SetState_SET_STATE_FINISHED {
				return nil
			}
		}
		next += len(states)
		if err := wait(stream.Context(), changed); err != nil {
			return err
		}
	}
}

// statesAfter returns the states of a set after the first n, and the channel that is closed
// at the next change.
func (c setService) statesAfter(req *baiv1.WatchSetRequest, n int) ([]*baiv1.Set, <-chan struct{}, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	s, err := c.find(req.GetSet(), req.GetOwner())
	if err != nil {
		return nil, nil, err
	}
	return s.states[min(n, len(s.states)):], c.p.changed, nil
}

// CancelSet makes a set that has not finished canceling.
func (c setService) CancelSet(_ context.Context, req *baiv1.CancelSetRequest) (*baiv1.CancelSetResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	s, err := c.find(req.GetSet(), req.GetOwner())
	if err != nil {
		return nil, err
	}
	if s.set.GetState() < baiv1.SetState_SET_STATE_CANCELING {
		s.apply(func(s *baiv1.Set) {
			s.State, s.CanceledBy, s.EstimatedEndTime = baiv1.SetState_SET_STATE_CANCELING, req.GetOwner(), nil
		})
		c.p.notifyWaiters()
	}
	return &baiv1.CancelSetResponse{Set: withoutDetails(s.set)}, nil
}

// ResumeSet makes a set running that has runs left.
func (c setService) ResumeSet(_ context.Context, req *baiv1.ResumeSetRequest) (*baiv1.ResumeSetResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	s, err := c.find(req.GetSet(), req.GetOwner())
	if err != nil {
		return nil, err
	}
	if s.set.GetSubmitted() == s.set.GetRunCount() {
		return nil, status.Errorf(codes.FailedPrecondition, "all %d runs of set %s were submitted: it has none to go on with",
			s.set.GetRunCount(), s.set.GetId())
	}
	if s.set.GetState() != baiv1.SetState_SET_STATE_RUNNING {
		s.apply(func(s *baiv1.Set) {
			s.State, s.Outcome, s.Message, s.CanceledBy, s.EndTime = baiv1.SetState_SET_STATE_RUNNING, 0, "", "", nil
		})
		c.p.notifyWaiters()
	}
	return &baiv1.ResumeSetResponse{Set: withoutDetails(s.set)}, nil
}

// RerunSet makes a running set like another one; of its runs those that did not succeed, if
// these are asked for.
func (c setService) RerunSet(_ context.Context, req *baiv1.RerunSetRequest) (*baiv1.RerunSetResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	s, err := c.find(req.GetSet(), req.GetOwner())
	if err != nil {
		return nil, err
	}
	if req.GetFailed() && s.set.GetState() != baiv1.SetState_SET_STATE_FINISHED {
		return nil, status.Errorf(codes.FailedPrecondition, "set %s has not finished", s.set.GetId())
	}
	old := s.set
	next := &baiv1.Set{
		Id: fmt.Sprintf("6sss%022d", len(c.p.sets)+1), Owner: req.GetOwner(), Namespace: old.GetNamespace(), RerunOfSet: old.GetId(),
		CellCount: old.GetCellCount(), RunCount: old.GetRunCount(), Repetitions: old.GetRepetitions(), Warmup: old.GetWarmup(),
		Order: old.GetOrder(), OnFailure: old.GetOnFailure(), State: baiv1.SetState_SET_STATE_RUNNING,
		CreateTime: timestamppb.New(c.p.now), UpdateTime: timestamppb.New(c.p.now),
	}
	if req.GetFailed() {
		next.RunCount -= old.GetSucceeded() + old.GetSkipped()
	}
	c.p.addSet(&storedSet{set: next})
	return &baiv1.RerunSetResponse{Set: withoutDetails(next)}, nil
}
