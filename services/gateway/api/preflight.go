package api

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/benchmark-ai/bai/descriptors"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/preflight"
	"github.com/benchmark-ai/bai/services/gateway/submit"
)

// Preflight says whether a run would find what it needs.
type Preflight interface {
	// Check is that of preflight.Checker.
	Check(ctx context.Context, d *descriptors.Descriptor, text []byte, withCode bool) []preflight.Check
}

// preflightServer implements bai.v1.PreflightService.
type preflightServer struct {
	baiv1.UnimplementedPreflightServiceServer

	preflight Preflight // nil: this server knows no cluster
	parser    descriptors.Parser
}

// PreflightDescriptor implements bai.v1.PreflightService.
func (s *preflightServer) PreflightDescriptor(ctx context.Context, req *baiv1.PreflightDescriptorRequest) (*baiv1.PreflightDescriptorResponse, error) {
	if s.preflight == nil {
		return nil, &submit.UnsupportedError{Feature: "preflight checks"}
	}
	parser := s.parser.In(req.GetNamespace())
	parser.Engines = nil // one that is not here is a check among others
	d, text, faults := submit.Parse(parser, req.GetDescriptorFile(), req.GetDescriptorToml(), overridesFrom(req.GetOverrides()))
	if len(faults.Errors()) > 0 {
		return nil, &submit.InvalidError{Faults: submit.TruncateFaults(faults)}
	}
	resp := &baiv1.PreflightDescriptorResponse{Warnings: truncateFaults(faultsOf(faults))}
	size := 0
	for _, c := range s.preflight.Check(ctx, d, text, req.GetWithScript()) {
		check := checkOf(c)
		if size += proto.Size(check) + 8; size > maxResponse/2 {
			break
		}
		resp.Checks = append(resp.Checks, check)
	}
	return resp, nil
}

// valid is text that a message may carry.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func checkOf(c preflight.Check) *baiv1.Check {
	grade := baiv1.Grade_GRADE_FINE
	switch c.Grade {
	case preflight.Fine:
	case preflight.Warning:
		grade = baiv1.Grade_GRADE_WARNING
	case preflight.Fault:
		grade = baiv1.Grade_GRADE_FAULT
	}
	return &baiv1.Check{
		Topic: c.Topic, Subject: valid(c.Subject), Grade: grade, Message: valid(c.Message), Remedy: valid(c.Remedy), FailureClass: classOf(c.Class),
	}
}
