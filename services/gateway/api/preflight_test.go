package api_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/preflight"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// fakePreflight returns one check of each grade, and the descriptor's description.
type fakePreflight struct{}

func (fakePreflight) Check(_ context.Context, d *descriptors.Descriptor, _ []byte, _ bool) []preflight.Check {
	return []preflight.Check{
		{Topic: "cluster", Message: d.Info.Description},
		{Topic: "quota", Grade: preflight.Warning, Message: "not \xff seen", Remedy: "look"},
		{Topic: "nodes", Subject: "benchmark", Grade: preflight.Fault, Message: "none", Class: event.ClassUser},
	}
}

func TestWhatIsMissingIsAnAnswerAndFaultsAreAnError(t *testing.T) {
	w := newFixture(t, options{preflight: fakePreflight{}})
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
	checkRefused(t, err, codes.InvalidArgument, "a.toml:1:")
}

func TestWhoeverJudgesADescriptorKnowsWhatThePlatformsSettingsKnow(t *testing.T) {
	mine := []byte("spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ninstance_type = \"lab.huge\"\nstrategy = \"mpi\"\n" +
		"[hardware.distributed]\nnum_instances = 2\nprocesses_per_instance = \"gpus\"\n[env]\ndocker_image = \"alpine:3\"\n[ml]\nbenchmark_code = \"train\"\n")
	otherZone := []*baiv1.Override{{Path: "hardware.aws_zone_id", Value: "use1-az9"}}
	knows := newFixture(t, options{preflight: fakePreflight{}, parser: parser.Parser{Zones: []string{"use1-az1"}, Instances: "lab.huge 8"}})
	knowsNot := newFixture(t, options{preflight: fakePreflight{}, parser: parser.Parser{Zones: []string{"use1-az1"}}})
	for call, judge := range validators() {
		if err := judge(t.Context(), knows, mine); err != nil {
			t.Errorf("%s of the operator's own machine: %v", call, err)
		}
		if err := judge(t.Context(), knowsNot, mine); err == nil {
			t.Errorf("%s of another operator's machine: taken", call)
		}
		if err := judge(t.Context(), knows, []byte(valid), otherZone...); err == nil || !strings.Contains(err.Error(), "zone") {
			t.Errorf("%s of a zone that the platform does not know: %v", call, err)
		}
	}
}

// validators returns the calls that validate a descriptor, by name. Each returns an
// error for a descriptor with a fault.
func validators() map[string]func(ctx context.Context, w *fixture, text []byte, set ...*baiv1.Override) error {
	return map[string]func(ctx context.Context, w *fixture, text []byte, set ...*baiv1.Override) error{
		"submit": func(ctx context.Context, w *fixture, text []byte, set ...*baiv1.Override) error {
			_, err := w.client.SubmitRun(ctx, &baiv1.SubmitRunRequest{DescriptorToml: text, Overrides: set})
			return err
		},
		"render": func(ctx context.Context, w *fixture, text []byte, set ...*baiv1.Override) error {
			_, err := w.descriptors.RenderDescriptor(ctx, &baiv1.RenderDescriptorRequest{DescriptorToml: text, Overrides: set})
			return err
		},
		"preflight": func(ctx context.Context, w *fixture, text []byte, set ...*baiv1.Override) error {
			_, err := baiv1.NewPreflightServiceClient(w.conn).PreflightDescriptor(ctx, &baiv1.PreflightDescriptorRequest{DescriptorToml: text, Overrides: set})
			return err
		},
		"validate": func(ctx context.Context, w *fixture, text []byte, set ...*baiv1.Override) error {
			resp, err := w.descriptors.ValidateDescriptor(ctx, &baiv1.ValidateDescriptorRequest{DescriptorToml: text, Overrides: set})
			for _, f := range resp.GetFaults() {
				if !f.GetWarning() {
					err = errors.New(f.GetMessage())
				}
			}
			return err
		},
	}
}

func TestAServerThatKnowsNoClusterHasNoPreflight(t *testing.T) {
	w := newFixture(t, options{})
	_, err := baiv1.NewPreflightServiceClient(w.conn).PreflightDescriptor(t.Context(), &baiv1.PreflightDescriptorRequest{DescriptorToml: []byte(valid)})
	checkRefused(t, err, codes.Unimplemented, "does not have preflight checks")
}
