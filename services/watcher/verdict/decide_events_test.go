package verdict_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

func TestTell(t *testing.T) {
	launched := event.Launched{Header: event.NewHeader("l", "r1", "pets", "ann", at(0).Time), Job: "bai-r1-1"}
	retries := launched
	retries.Retries = 1
	infra := verdict.Verdict{Phase: event.PhaseFinished, Outcome: event.Failed, Class: event.ClassInfra, Reason: event.NodeLost, Message: "lost"}
	user := verdict.Verdict{Phase: event.PhaseFinished, Outcome: event.Failed, Class: event.ClassUser, Reason: event.NonZeroExit, Message: "3"}
	for name, tt := range map[string]struct {
		launched event.Launched
		verdict  verdict.Verdict
		want     string
	}{
		"the cluster's failure is tried again while retries are left": {retries, infra, "bai.retried attempt 2: infra NodeLost: lost"},
		"the cluster's failure ends the run when none is left":        {launched, infra, "bai.finished attempt 1: failed infra NodeLost: lost"},
		"the user's failure is never tried again":                     {retries, user, "bai.finished attempt 1: failed user NonZeroExit: 3"},
		"nothing to say": {launched, verdict.Verdict{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, strings.Join(eventLines(verdict.EventsFor(tt.launched, tt.verdict, verdict.Observation{})), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAnEndSaysOfTheProcess(t *testing.T) {
	p := newPod(collectorRunning(), exits(cluster.ContainerBenchmark, 3, "Error", ""))
	p.Status.ContainerStatuses[0].ImageID = "docker.io/library/debian@sha256:abc"
	quiet := newPod(waiting(cluster.ContainerCollect, "PodInitializing", ""))
	quiet.UID = "other"
	seen := cluster.Snapshot{Job: job(failed(20, "")), Pods: pods(p, quiet)}
	code, began, over := 3, at(3).Time, at(10).Time
	want := event.Finished{ExitCode: &code, Started: &began, Ended: &over, Collectors: []string{"uid-0"}, Images: map[string]string{"uid-0": "sha256:abc"}}
	for name, s := range map[string]verdict.Observation{"as it is": {Seen: seen}, "as it was": {LastSeen: seen}} {
		t.Run(name, func(t *testing.T) {
			v := verdict.Verdict{Phase: event.PhaseFinished, Outcome: event.Failed}
			got, ok := verdict.EventsFor(event.Launched{}, v, s)[0].(event.Finished)
			if !ok {
				t.Fatal("no end was told")
			}
			got = event.Finished{ExitCode: got.ExitCode, Started: got.Started, Ended: got.Ended, Collectors: got.Collectors, Images: got.Images}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheDigestOfAnImageIsWhatTheClusterSays(t *testing.T) {
	for id, want := range map[string]string{
		"docker.io/library/debian@sha256:abc": "sha256:abc", "sha256:def": "sha256:def", "docker-pullable://debian@sha256:abc": "sha256:abc",
		"": event.NoImage, // of the local cluster
	} {
		p := newPod(exits(cluster.ContainerBenchmark, 0, "Completed", ""))
		p.Status.ContainerStatuses[0].ImageID = id
		s := verdict.Observation{Seen: cluster.Snapshot{Pods: pods(p, newPod(waiting(cluster.ContainerBenchmark, "PodInitializing", "")))}}
		f, ok := verdict.EventsFor(event.Launched{}, verdict.Verdict{Phase: event.PhaseFinished}, s)[0].(event.Finished)
		if diff := cmp.Diff(map[string]string{"uid-0": want}, f.Images); !ok || diff != "" {
			t.Errorf("%q (-want +got):\n%s", id, diff)
		}
	}
}
