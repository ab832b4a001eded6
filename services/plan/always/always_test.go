package always_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan/always"
)

// ended is the state of a container that ran and ended.
func ended(code int32, reason string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, StartedAt: metav1.NewTime(time.Unix(1, 0))}}
}

// podWith returns a pod with a step before the benchmark and one at the end, whose containers have states.
func podWith(before, atEnd, benchmark corev1.ContainerState) corev1.Pod {
	restarts := corev1.ContainerRestartPolicyAlways
	return corev1.Pod{
		Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "step-drop", RestartPolicy: &restarts}, {Name: "step-fill"}}},
		Status: corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "step-drop", State: atEnd}, {Name: "step-fill", State: before}},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: cluster.ContainerBenchmark, State: benchmark}},
		},
	}
}

func TestAStepIsKnownToHaveRunOnceItsContainerHasEndedByItself(t *testing.T) {
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for name, tt := range map[string]struct {
		state corev1.ContainerState
		want  bool
	}{
		"it succeeded":                      {ended(0, "Completed"), true},
		"it failed":                         {ended(3, "Error"), true},
		"it ran out of memory":              {ended(137, "OOMKilled"), true},
		"it was killed, perhaps before":     {ended(137, "Error"), false},
		"it was ended, perhaps before":      {ended(143, "Error"), false},
		"it could not be started":           {ended(128, "StartError"), false},
		"its node does not know of its end": {corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown"}}, false},
		"it runs or waits":                  {runs, false},
		"it has not started":                {corev1.ContainerState{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := podWith(corev1.ContainerState{}, tt.state, runs)
			if got := always.Termination(p, "drop") != nil; got != tt.want {
				t.Errorf("that it has run is %v", got)
			}
			if missing := always.Missing([]string{"drop"}, []corev1.Pod{p}); len(missing) > 0 == tt.want {
				t.Errorf("missing are %q", missing)
			}
		})
	}
}

// withSteps returns a pod with steps a, b, which needs a, and c, which needs b, and how they ended.
func withSteps(a, b, c corev1.ContainerState) corev1.Pod {
	restarts := corev1.ContainerRestartPolicyAlways
	var p corev1.Pod
	for _, s := range []struct {
		name  string
		needs []string
		state corev1.ContainerState
	}{{"c", []string{"b"}, c}, {"b", []string{"a"}, b}, {"a", nil, a}} {
		name, command := cluster.ContainerStep+s.name, slices.Concat([]string{"bai", "always", s.name, "1m0s"}, s.needs, []string{"--", "true"})
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: name, Command: command, RestartPolicy: &restarts})
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{Name: name, State: s.state})
	}
	return p
}

// The container of a step that was skipped ends with exit code 0.
func TestAStepThatWasSkippedHasNotSucceeded(t *testing.T) {
	well, runs := ended(0, "Completed"), corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	failed := always.StepResult{Name: "a", Problem: "ended with exit code 1"}
	for name, tt := range map[string]struct {
		pods    []corev1.Pod
		want    map[string]always.StepResult
		missing []string
	}{
		"all succeeded": {
			pods: []corev1.Pod{withSteps(well, well, well)}, want: map[string]always.StepResult{"a": {Name: "a"}, "b": {Name: "b"}, "c": {Name: "c"}},
		},
		"one that they need has failed": {
			pods: []corev1.Pod{withSteps(ended(1, "Error"), well, well)},
			want: map[string]always.StepResult{"a": failed, "b": {Name: "b", Skipped: true}, "c": {Name: "c", Skipped: true}},
		},
		"one that they need was killed, and has to run again before them": {
			pods: []corev1.Pod{withSteps(ended(137, "Error"), well, well)}, want: map[string]always.StepResult{}, missing: []string{"a", "b", "c"},
		},
		"they run in the next pod": {
			pods: []corev1.Pod{withSteps(ended(137, "Error"), well, well), withSteps(well, well, runs)},
			want: map[string]always.StepResult{"a": {Name: "a"}, "b": {Name: "b"}}, missing: []string{"c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := []string{"a", "b", "c"}
			if diff := cmp.Diff(tt.want, always.Ended(all, tt.pods)); diff != "" {
				t.Errorf("ended (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.missing, always.Missing(all, tt.pods)); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAttemptHasBegunWithItsFirstCommandAndNotWithAStepAtTheEnd(t *testing.T) {
	none, runs := corev1.ContainerState{}, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for name, tt := range map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"nothing has started":       {podWith(none, none, none), false},
		"a step at the end waits":   {podWith(none, runs, none), false},
		"a step before it runs":     {podWith(runs, runs, none), true},
		"a step before it failed":   {podWith(ended(1, "Error"), runs, none), true},
		"the benchmark runs":        {podWith(ended(0, "Completed"), runs, runs), true},
		"the benchmark never began": {podWith(none, runs, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown"}}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := always.Begun(tt.pod); got != tt.want {
				t.Errorf("that it has begun is %v", got)
			}
		})
	}
}

func TestTheEndSaysWhatBecameOfTheStepsAndKeepsItsOwnOutcome(t *testing.T) {
	end := event.Finished{Outcome: event.Failed, Reason: event.NodeLost, Message: "lost", Collectors: []string{"b"}}
	p := always.PendingEnd{Steps: []string{"save", "drop", "last"}, Finished: &end}
	got := p.End(always.Results{Collectors: []string{"a", "b"}, Steps: []always.StepResult{
		{Name: "save"}, {Name: "drop", Problem: "ended with exit code 3"}, {Name: "last", NotRun: "no node"},
	}})
	want := end
	want.Message, want.Collectors = "lost; at the end step drop ended with exit code 3; step last, which always runs, did not run: no node", []string{"a", "b"}
	if diff := cmp.Diff([]event.Event{want}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if end.Message != "lost" {
		t.Error("the stored end has changed")
	}
	next := event.Retried{Message: "lost"}
	if diff := cmp.Diff([]event.Event{next}, always.PendingEnd{Retried: &next}.End(always.Results{Steps: []always.StepResult{{Name: "save"}}})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
