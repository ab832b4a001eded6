package api_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/projection"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestARunIsToldWhole(t *testing.T) {
	w := newFixture(t, options{})
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	later := at.Add(time.Minute)
	code := 3
	run := store.Run{
		ID: "01k8h4fzqh3v7x9y2m5n8p0r4t", Name: "n", Namespace: "team", Owner: "ann",
		Lineage: event.Lineage{Set: "s", Cell: "c", Repetition: 2, Warmup: true, Schedule: "d", Firing: &at, RerunOf: "r"},
		Labels:  map[string]string{"a": "b"}, File: "f.toml", Descriptor: valid,
		Phase: event.PhaseFinished, Outcome: event.Failed, Class: event.ClassUser, Reason: event.NonZeroExit, Message: "exit code 3",
		Progress: &event.Progress{Done: 1, Total: 2, Unit: "items"}, Attempt: 2, ExitCode: &code,
		Created: at, Updated: later, Started: &at, Ended: &later,
		Data: []event.Data{{Source: "https://example.com/cats", Path: "/cats", Object: "key", SHA256: "abc", Size: 9}}, Revision: 1,
		Use: event.Use{Framework: "PyTorch", FrameworkVersion: "2.4", DataIDs: []string{"cats"}},
	}
	change := store.Change{Run: run.ID, Revision: 1, Event: "e", Topic: event.TopicFinished, Time: later, Attempt: 2, Phase: run.Phase, Outcome: run.Outcome, Class: run.Class, Reason: run.Reason, Message: run.Message, Progress: run.Progress}
	if err := w.store.PutRun(t.Context(), run, change); err != nil {
		t.Fatal(err)
	}
	got, err := w.client.GetRun(t.Context(), &baiv1.GetRunRequest{Run: run.ID})
	if err != nil {
		t.Fatal(err)
	}
	exit := int32(3)
	progress := &baiv1.Progress{Done: 1, Total: 2, Unit: "items"}
	want := &baiv1.Run{
		Id: run.ID, Name: "n", Namespace: "team", Owner: "ann",
		Lineage:        &baiv1.Lineage{SetId: "s", Cell: "c", Repetition: 2, Warmup: true, ScheduleId: "d", FiringTime: timestamppb.New(at), RerunOf: "r"},
		Labels:         map[string]string{"a": "b"},
		DescriptorFile: "f.toml", DescriptorToml: valid,
		Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_USER, Reason: "NonZeroExit", Message: "exit code 3",
		Progress: progress, Attempt: 2, ExitCode: &exit,
		CreateTime: timestamppb.New(at), UpdateTime: timestamppb.New(later), StartTime: timestamppb.New(at), EndTime: timestamppb.New(later),
		Data: []*baiv1.DataSet{{Source: "https://example.com/cats", Path: "/cats", Sha256: "abc", Size: 9}}, Revision: 1,
		Framework: "PyTorch", FrameworkVersion: "2.4", DataIds: []string{"cats"},
		Completeness: &baiv1.Completeness{Complete: true},
	}
	if diff := cmp.Diff(want, got.GetRun(), protocmp.Transform()); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	stream, err := w.client.WatchRun(t.Context(), &baiv1.WatchRunRequest{Run: run.ID})
	changes := receiveAll(t, stream, err)
	if len(changes) != 1 {
		t.Fatalf("%d changes", len(changes))
	}
	if diff := cmp.Diff(&baiv1.Change{
		Revision: 1, Time: timestamppb.New(later), Attempt: 2, Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_FAILED,
		FailureClass: baiv1.FailureClass_FAILURE_CLASS_USER, Reason: "NonZeroExit", Message: "exit code 3", Progress: progress, Kind: "bai.finished",
	}, changes[0].GetChange(), protocmp.Transform()); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
}

func TestEveryWordHasItsNameInTheContract(t *testing.T) {
	w := newFixture(t, options{})
	for i, phase := range event.Phases()[:7] {
		id := w.submit(nil)
		w.reportStatus(id, phase, "now")
		got := w.list(&baiv1.ListRunsRequest{Phases: []baiv1.Phase{baiv1.Phase(i + 1)}}) //nolint:gosec // seven phases
		if diff := cmp.Diff([]string{id}, got); diff != "" {
			t.Errorf("phase %s (-want +got):\n%s", phase, diff)
		}
	}
}

func TestARunWhoseSubmissionWasOvertakenIsToldWhole(t *testing.T) {
	w := newFixture(t, options{noProjection: true})
	id := w.submit(nil)
	run, change, _ := projection.Apply(nil, event.Status{Header: w.header(id, "running"), Phase: event.PhaseRunning, Message: "runs"})
	if err := w.store.PutRun(t.Context(), run, change); err != nil {
		t.Fatal(err)
	}
	got, err := w.client.GetRun(t.Context(), &baiv1.GetRunRequest{Run: id})
	if err != nil {
		t.Fatal(err)
	}
	if r := got.GetRun(); r.GetPhase() != baiv1.Phase_PHASE_RUNNING || r.GetMessage() != "runs" || r.GetDescriptorToml() != valid || r.GetRevision() != 1 {
		t.Errorf("got %v", r)
	}
}
