package analyses

import (
	"context"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/analysis"
	"github.com/benchmark-ai/bai/services/gateway/api/message"
	"github.com/benchmark-ai/bai/services/gateway/api/request"
)

// Baselines implements bai.v1.BaselineService.
type Baselines struct {
	baiv1.UnimplementedBaselineServiceServer

	Analyses *analysis.Analyses
}

// SetBaseline implements bai.v1.BaselineService.
func (s *Baselines) SetBaseline(ctx context.Context, req *baiv1.SetBaselineRequest) (*baiv1.SetBaselineResponse, error) {
	in := analysis.Scope{Owner: request.Owner(ctx, req), Namespace: request.Namespace(req)}
	b, err := s.Analyses.SetBaseline(ctx, in, req.GetName(), req.GetOperand(), req.GetReason(), request.Caller(ctx))
	if err != nil {
		return nil, err
	}
	b.Revisions = b.Revisions[:1]
	return &baiv1.SetBaselineResponse{Baseline: baselineOf(b)}, nil
}

// GetBaseline implements bai.v1.BaselineService.
func (s *Baselines) GetBaseline(ctx context.Context, req *baiv1.GetBaselineRequest) (*baiv1.GetBaselineResponse, error) {
	b, err := s.Analyses.Baseline(ctx, request.Namespace(req), req.GetName())
	if err != nil {
		return nil, err
	}
	return &baiv1.GetBaselineResponse{Baseline: baselineOf(b)}, nil
}

// ListBaselines implements bai.v1.BaselineService.
func (s *Baselines) ListBaselines(ctx context.Context, req *baiv1.ListBaselinesRequest) (*baiv1.ListBaselinesResponse, error) {
	limit, err := request.PageSize(req)
	if err != nil {
		return nil, err
	}
	all, err := s.Analyses.Baselines(ctx, request.Namespace(req), req.GetPageToken(), limit+1)
	if err != nil {
		return nil, err
	}
	resp := &baiv1.ListBaselinesResponse{}
	for i, b := range all {
		if i == limit {
			resp.NextPageToken = all[i-1].Name
			break
		}
		b.Revisions = b.Revisions[:1]
		out := baselineOf(b)
		out.Revisions[0].RunIds = nil
		resp.Baselines = append(resp.Baselines, out)
	}
	return resp, nil
}

// DeleteBaseline implements bai.v1.BaselineService.
func (s *Baselines) DeleteBaseline(ctx context.Context, req *baiv1.DeleteBaselineRequest) (*baiv1.DeleteBaselineResponse, error) {
	existed, err := s.Analyses.DeleteBaseline(ctx, request.Namespace(req), req.GetName())
	if err != nil {
		return nil, err
	}
	return &baiv1.DeleteBaselineResponse{Existed: existed}, nil
}

func baselineOf(b analysis.Baseline) *baiv1.Baseline {
	out := &baiv1.Baseline{Name: b.Name, Namespace: b.Namespace, Revision: b.Newest().Number}
	for _, r := range b.Revisions {
		out.Revisions = append(out.Revisions, &baiv1.BaselineRevision{
			Revision: r.Number, Operand: r.Operand, RunIds: r.Runs, SetId: r.Set, Owner: r.Owner, Reason: r.Reason,
			CreateTime: message.Time(r.Time), RunCount: message.Int32(len(r.Runs)),
		})
	}
	return out
}
