package api

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api/message"
	"github.com/benchmark-ai/bai/services/gateway/preflight"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/gateway/submit"
)

// Preflight checks whether a cluster has everything that a run needs.
type Preflight interface {
	// Check does the same as preflight.Checker.Check.
	Check(ctx context.Context, d *descriptors.Descriptor, text []byte, withCode bool) []preflight.Check
}

// preflightServer implements bai.v1.PreflightService.
type preflightServer struct {
	baiv1.UnimplementedPreflightServiceServer

	preflight Preflight // nil: this server has no cluster to check against
	parser    parser.Parser
}

// PreflightDescriptor implements bai.v1.PreflightService.
func (s *preflightServer) PreflightDescriptor(
	ctx context.Context, req *baiv1.PreflightDescriptorRequest,
) (*baiv1.PreflightDescriptorResponse, error) {
	if s.preflight == nil {
		return nil, &submit.UnsupportedError{Feature: "preflight checks"}
	}
	parser := s.parser.In(req.GetNamespace())
	parser.Engines = nil // preflight itself checks whether the engine is available
	d, text, faults := submit.Parse(parser, req.GetDescriptorFile(), req.GetDescriptorToml(), overridesFrom(req.GetOverrides()))
	if len(faults.Errors()) > 0 {
		return nil, &submit.InvalidError{Faults: submit.TruncateFaults(faults)}
	}
	resp := &baiv1.PreflightDescriptorResponse{Warnings: truncateFaults(faultsOf(faults))}
	size := 0
	for _, c := range s.preflight.Check(ctx, d, text, req.GetWithScript()) {
		check := checkOf(c)
		if size += proto.Size(check) + 8; size > rpc.MaxResponse/2 {
			break
		}
		resp.Checks = append(resp.Checks, check)
	}
	return resp, nil
}

// valid returns text with invalid UTF-8 replaced, since a message must be UTF-8.
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
		Topic: c.Topic, Subject: valid(c.Subject), Grade: grade, Message: valid(c.Message), Remedy: valid(c.Remedy),
		FailureClass: message.Class(c.Class),
	}
}
