package baitest

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// analyses are what the platform answers about series. It computes nothing.
type analyses struct {
	comparisons map[[2]string]*baiv1.CompareRunsResponse // by the operands
	histories   map[string]*baiv1.QueryHistoryResponse   // by task
	powers      map[string]*baiv1.PlanPowerResponse      // by task
	rankings    map[[2]string]*baiv1.RankRunsResponse    // by the operand and the attribute
	requests    []proto.Message
	compare     func(base, other string) *baiv1.CompareRunsResponse
}

// OnCompare has f answer the calls of CompareRuns for which no answer is set. It may not call the
// Platform.
func (p *Platform) OnCompare(f func(base, other string) *baiv1.CompareRunsResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.analyses.compare = f
}

// SetComparison sets the answer to CompareRuns for its two operands.
func (p *Platform) SetComparison(c *baiv1.CompareRunsResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.analyses.comparisons[[2]string{c.GetOld().GetOperand(), c.GetNew().GetOperand()}] = c
}

// SetHistory sets the answer to QueryHistory for a task, whose method is "segments/2".
func (p *Platform) SetHistory(task string, h *baiv1.QueryHistoryResponse) {
	h.Method = "segments/2"
	p.mu.Lock()
	defer p.mu.Unlock()
	p.analyses.histories[task] = h
}

// SetPower sets the answer to PlanPower for a task.
func (p *Platform) SetPower(task string, w *baiv1.PlanPowerResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.analyses.powers[task] = w
}

// SetRanking sets the answer to RankRuns for an operand and an attribute.
func (p *Platform) SetRanking(runs, by string, r *baiv1.RankRunsResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.analyses.rankings[[2]string{runs, by}] = r
}

// AddBaseline adds a baseline, or replaces one. The newest revision comes first.
func (p *Platform) AddBaseline(b *baiv1.Baseline) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.baselines[b.GetNamespace()+"/"+b.GetName()] = proto.CloneOf(b)
}

// AnalysisRequests returns the requests of AnalysisService, in order.
func (p *Platform) AnalysisRequests() []proto.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.analyses.requests)
}

// analysisService is the platform's service for analyses.
type analysisService struct {
	baiv1.UnimplementedAnalysisServiceServer

	p *Platform
}

// CompareRuns implements bai.v1.AnalysisService.
func (c analysisService) CompareRuns(_ context.Context, req *baiv1.CompareRunsRequest) (*baiv1.CompareRunsResponse, error) {
	res, err := answer(c.p, req, c.p.analyses.comparisons, [2]string{req.GetOld(), req.GetNew()}, "run or set")
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if err != nil && c.p.analyses.compare != nil {
		return c.p.analyses.compare(req.GetOld(), req.GetNew()), nil
	}
	return res, err
}

// QueryHistory implements bai.v1.AnalysisService. Of the request it heeds the task and the
// metrics.
func (c analysisService) QueryHistory(_ context.Context, req *baiv1.QueryHistoryRequest) (*baiv1.QueryHistoryResponse, error) {
	h, err := answer(c.p, req, c.p.analyses.histories, req.GetTask(), "task")
	if err == nil {
		h.Series = ofMetrics(h.GetSeries(), req.GetMetrics())
	}
	return h, err
}

// PlanPower implements bai.v1.AnalysisService. Of the request it heeds the task and the
// metrics.
func (c analysisService) PlanPower(_ context.Context, req *baiv1.PlanPowerRequest) (*baiv1.PlanPowerResponse, error) {
	w, err := answer(c.p, req, c.p.analyses.powers, req.GetTask(), "task")
	if err == nil {
		w.Series = ofMetrics(w.GetSeries(), req.GetMetrics())
	}
	return w, err
}

// RankRuns implements bai.v1.AnalysisService. Of the request it heeds the operand, the attribute
// and the metrics.
func (c analysisService) RankRuns(_ context.Context, req *baiv1.RankRunsRequest) (*baiv1.RankRunsResponse, error) {
	r, err := answer(c.p, req, c.p.analyses.rankings, [2]string{req.GetRuns(), req.GetBy()}, "run or set")
	if err == nil {
		r.Series = ofMetrics(r.GetSeries(), req.GetMetrics())
	}
	return r, err
}

// ofMetrics returns the series of metrics; none means all.
func ofMetrics[S interface{ GetMetric() string }](all []S, metrics []string) []S {
	return slices.DeleteFunc(all, func(s S) bool { return len(metrics) > 0 && !slices.Contains(metrics, s.GetMetric()) })
}

// answer returns a copy of what was set for a key.
func answer[K comparable, M proto.Message](p *Platform, req proto.Message, all map[K]M, key K, what string) (M, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.analyses.requests = append(p.analyses.requests, proto.Clone(req))
	if m, ok := all[key]; ok {
		return proto.CloneOf(m), nil
	}
	var none M
	return none, status.Errorf(codes.NotFound, "%s %v does not exist", what, key)
}

// baselineService is the platform's service for baselines.
type baselineService struct {
	baiv1.UnimplementedBaselineServiceServer

	p *Platform
}

// SetBaseline implements bai.v1.BaselineService. The run of a revision is its operand.
func (c baselineService) SetBaseline(_ context.Context, req *baiv1.SetBaselineRequest) (*baiv1.SetBaselineResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	namespace := cmp.Or(req.GetNamespace(), "default")
	key := namespace + "/" + req.GetName()
	b := c.p.baselines[key]
	if b == nil {
		b = &baiv1.Baseline{Name: req.GetName(), Namespace: namespace}
		c.p.baselines[key] = b
	}
	if len(b.GetRevisions()) == 0 || b.GetRevisions()[0].GetOperand() != req.GetOperand() {
		b.Revision++
		b.Revisions = slices.Insert(b.GetRevisions(), 0, &baiv1.BaselineRevision{
			Revision: b.GetRevision(), Operand: req.GetOperand(), RunIds: []string{req.GetOperand()}, RunCount: 1,
			Owner: req.GetOwner(), Reason: req.GetReason(),
			CreateTime: timestamppb.New(c.p.now),
		})
	}
	return &baiv1.SetBaselineResponse{Baseline: newest(b)}, nil
}

// newest returns a baseline with its newest revision only.
func newest(b *baiv1.Baseline) *baiv1.Baseline {
	b = proto.CloneOf(b)
	b.Revisions = b.GetRevisions()[:1]
	return b
}

// GetBaseline implements bai.v1.BaselineService.
func (c baselineService) GetBaseline(_ context.Context, req *baiv1.GetBaselineRequest) (*baiv1.GetBaselineResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	b, ok := c.p.baselines[cmp.Or(req.GetNamespace(), "default")+"/"+req.GetName()]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "baseline %s does not exist", req.GetName())
	}
	return &baiv1.GetBaselineResponse{Baseline: proto.CloneOf(b)}, nil
}

// ListBaselines returns pages of one, so that there are several.
func (c baselineService) ListBaselines(_ context.Context, req *baiv1.ListBaselinesRequest) (*baiv1.ListBaselinesResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	res := &baiv1.ListBaselinesResponse{}
	for _, key := range slices.Sorted(maps.Keys(c.p.baselines)) {
		b := c.p.baselines[key]
		switch {
		case b.GetNamespace() != cmp.Or(req.GetNamespace(), "default"), b.GetName() <= req.GetPageToken():
		case len(res.GetBaselines()) == 0:
			one := newest(b)
			one.Revisions[0].RunIds = nil
			res.Baselines = append(res.Baselines, one)
		default:
			res.NextPageToken = res.GetBaselines()[0].GetName()
		}
	}
	return res, nil
}

// DeleteBaseline implements bai.v1.BaselineService.
func (c baselineService) DeleteBaseline(_ context.Context, req *baiv1.DeleteBaselineRequest) (*baiv1.DeleteBaselineResponse, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	key := cmp.Or(req.GetNamespace(), "default") + "/" + req.GetName()
	_, existed := c.p.baselines[key]
	delete(c.p.baselines, key)
	return &baiv1.DeleteBaselineResponse{Existed: existed}, nil
}
