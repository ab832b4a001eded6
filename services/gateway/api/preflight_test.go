package api_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/benchmark-ai/bai/descriptors"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/preflight"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// foresees finds one thing of each grade, and the descriptor's description.
type foresees struct{}

func (foresees) Check(_ context.Context, d *descriptors.Descriptor, _ []byte) []preflight.Check {
	return []preflight.Check{
		{Topic: "cluster", Message: d.Info.Description},
		{Topic: "quota", Grade: preflight.Warning, Message: "not \xff seen", Remedy: "look"},
		{Topic: "nodes", Subject: "benchmark", Grade: preflight.Fault, Message: "none", Class: event.ClassUser},
	}
}

func TestWhatIsMissingIsAnAnswerAndFaultsAreAnError(t *testing.T) {
	w := newWorld(t, options{preflight: foresees{}})
	client := baiv1.NewPreflightServiceClient(w.conn)
	set := []*baiv1.Override{{Path: "info.description", Value: "two"}}
	got, err := client.PreflightDescriptor(t.Context(), &baiv1.PreflightDescriptorRequest{DescriptorToml: []byte(valid), Overrides: set})
	if err != nil {
		t.Fatal(err)
	}
	want := []*baiv1.Check{
		{Topic: "cluster", Grade: baiv1.Grade_GRADE_FINE, Message: "two"},
		{Topic: "quota", Grade: baiv1.Grade_GRADE_WARNING, Message: "not \uFFFD seen", Remedy: "look"},
		{Topic: "nodes", Subject: "benchmark", Grade: baiv1.Grade_GRADE_FAULT, Message: "none", FailureClass: baiv1.FailureClass_FAILURE_CLASS_USER},
	}
	if diff := cmp.Diff(want, got.GetChecks(), protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = client.PreflightDescriptor(t.Context(), &baiv1.PreflightDescriptorRequest{DescriptorToml: []byte("x"), DescriptorFile: "a.toml"})
	refused(t, err, codes.InvalidArgument, "a.toml:1:")
}

func TestAServerThatKnowsNoClusterHasNoPreflight(t *testing.T) {
	w := newWorld(t, options{})
	_, err := baiv1.NewPreflightServiceClient(w.conn).PreflightDescriptor(t.Context(), &baiv1.PreflightDescriptorRequest{DescriptorToml: []byte(valid)})
	refused(t, err, codes.Unimplemented, "does not have preflight checks")
}
