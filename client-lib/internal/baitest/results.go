package baitest

import (
	"context"

	"google.golang.org/protobuf/proto"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// SetSummaries sets the summaries of a run. Before, they are pending.
func (p *Platform) SetSummaries(id string, s *baiv1.GetSummariesResponse) {
	p.update(id, func(r *record) { r.summaries = s })
}

// SetEnvironment says where a run ran.
func (p *Platform) SetEnvironment(id string, e *baiv1.Environment) {
	p.update(id, func(r *record) { r.environment = e })
}

// resultService is the platform's service for results.
type resultService struct {
	baiv1.UnimplementedResultServiceServer

	p *Platform
}

// GetSummaries implements bai.v1.ResultService.
func (l resultService) GetSummaries(_ context.Context, req *baiv1.GetSummariesRequest) (*baiv1.GetSummariesResponse, error) {
	r, err := l.p.lookup(req.GetRun(), req.GetOwner())
	if err != nil {
		return nil, err
	}
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	res := &baiv1.GetSummariesResponse{Pending: true, Attempt: r.run.GetAttempt()}
	if r.summaries != nil {
		res = proto.CloneOf(r.summaries)
	}
	res.RunId = r.run.GetId()
	return res, nil
}

// GetEnvironment implements bai.v1.ResultService.
func (l resultService) GetEnvironment(_ context.Context, req *baiv1.GetEnvironmentRequest) (*baiv1.GetEnvironmentResponse, error) {
	r, err := l.p.lookup(req.GetRun(), req.GetOwner())
	if err != nil {
		return nil, err
	}
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	e := &baiv1.Environment{DescriptorSha256: Digest(r.descriptor)}
	if r.environment != nil {
		e = proto.CloneOf(r.environment)
	}
	return &baiv1.GetEnvironmentResponse{RunId: r.run.GetId(), Environment: e}, nil
}
