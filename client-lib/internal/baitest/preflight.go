package baitest

import (
	"context"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/suite"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// A scout is the part of a platform that looks before a run. Its cluster has one
// node without GPUs, no secret, and an account without rights where a descriptor
// has the label account = "poor".
type preflightService struct {
	baiv1.UnimplementedPreflightServiceServer
}

// PreflightDescriptor returns the results of the checks.
func (preflightService) PreflightDescriptor(_ context.Context,
	req *baiv1.PreflightDescriptorRequest,
) (*baiv1.PreflightDescriptorResponse, error) {
	set := make([]parser.Override, len(req.GetOverrides()))
	for i, o := range req.GetOverrides() {
		set[i] = parser.Override{Path: o.GetPath(), Value: o.GetValue()}
	}
	d, _, faults := suite.ParseWith(parser.Parser{}, req.GetDescriptorFile(), req.GetDescriptorToml(), set)
	if len(faults.Errors()) > 0 {
		return nil, invalid(faults)
	}
	checks := []*baiv1.Check{
		{Topic: "cluster", Grade: baiv1.Grade_GRADE_FINE, Message: "Kubernetes v1.35.4, namespace benchmarks"},
		{Topic: "permissions", Grade: baiv1.Grade_GRADE_FINE, Message: "all 20 permissions in the namespace benchmarks"},
		{
			Topic: "quota", Grade: baiv1.Grade_GRADE_WARNING, Message: "the quotas of the namespace cannot be listed: forbidden",
			Remedy: "grant the platform's account the verb list on resourcequotas",
		},
	}
	if d.Info.Labels["account"] == "poor" {
		checks[1] = &baiv1.Check{
			Topic: "permissions", Grade: baiv1.Grade_GRADE_FAULT, FailureClass: baiv1.FailureClass_FAILURE_CLASS_PLATFORM,
			Message: "the platform's account may not create jobs.batch",
			Remedy:  "grant these verbs in the namespace benchmarks by a role, as deploy/kubernetes/base/rbac does",
		}
	}
	if n := d.Hardware.GPUs; n != nil && *n > 0 {
		checks = append(checks, &baiv1.Check{
			Topic: "nodes", Subject: "benchmark", Grade: baiv1.Grade_GRADE_FAULT, FailureClass: baiv1.FailureClass_FAILURE_CLASS_USER,
			Message: "4 nvidia.com/gpu asked for, no node has any", Remedy: "install what offers it to pods",
		})
	}
	return &baiv1.PreflightDescriptorResponse{Checks: checks, Warnings: toProto(faults)}, nil
}
