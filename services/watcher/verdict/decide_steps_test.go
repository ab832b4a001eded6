package verdict_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

// after gives a pod a step after its benchmark, in a state.
func after(name string, state corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		name := pod.ContainerStep + name
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, State: state})
	}
}

// always gives a pod a step that runs at its end, in a state.
func always(name string, state corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		name, restarts := pod.ContainerStep+name, corev1.ContainerRestartPolicyAlways
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: name, RestartPolicy: &restarts})
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{Name: name, State: state})
	}
}

// before gives a pod a step before its benchmark, which ended with a code.
func before(name string, code int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: pod.ContainerStep + name})
		exits(pod.ContainerStep+name, code, "", "")(p)
	}
}

// terminated is the state of a container that ended at a time.
func terminated(when int, code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, StartedAt: at(3), FinishedAt: at(when)}}
}

func TestStepsOfARun(t *testing.T) {
	const first, second = pod.ContainerStep + "first", pod.ContainerStep + "second"
	going := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(5)}}
	notPulled := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}}
	benchmarkRuns, ok, bad := runs(cluster.ContainerBenchmark, 5), exitsAt(10, 0), exitsAt(10, 3)
	for name, tt := range map[string]struct {
		job      *batchv1.Job
		pod      corev1.Pod
		now      int
		canceled bool
		want     string
	}{
		"one before the benchmark runs": {
			pod: newPod(scheduled(), exits(first, 0, "", ""), runs(second, 11)), now: 20,
			want: "pending: running step second, before the benchmark",
		},
		"it may run for longer than the pod may wait": {
			pod: newPod(scheduled(), runs(first, 11)), now: 5000, want: "pending: running step first, before the benchmark",
		},
		"one before the benchmark has failed": {
			job: job(failed(12, "BackoffLimitExceeded")), pod: newPod(scheduled(), ended(corev1.PodFailed), exits(first, 3, "", "sorry\n")), now: 13,
			want: "failed user StepFailed: step first ended with exit code 3: sorry",
		},
		"one took too long": {
			job: job(failed(12, "BackoffLimitExceeded")), now: 13,
			pod:  newPod(scheduled(), ended(corev1.PodFailed), exits(first, pod.StepTimedOut, "", "timed out after 5m0s (deadline)")),
			want: "failed user StepFailed: step first timed out after 5m0s (deadline)",
		},
		"those after the benchmark wait for it": {
			pod: newPod(scheduled(), benchmarkRuns, after("first", going), after("second", going)), now: 20, want: "running: running the benchmark",
		},
		"the first of them runs": {
			pod: newPod(scheduled(), ok, collectorRunning(), after("first", going), after("second", going)), now: 500,
			want: "running: the benchmark ended (exit code 0); running step first, after the benchmark",
		},
		"the second of them runs": {
			pod: newPod(scheduled(), ok, collectorRunning(), after("first", terminated(12, 0)), after("second", going)), now: 500,
			want: "running: the benchmark ended (exit code 0); running step second, after the benchmark",
		},
		"one after the benchmark has failed": {
			job: job(failed(14, "BackoffLimitExceeded")), now: 15,
			pod:  newPod(scheduled(), ended(corev1.PodFailed), ok, after("first", terminated(12, 4)), after("second", terminated(13, 0))),
			want: "failed user StepFailed: step first ended with exit code 4",
		},
		"the benchmark has failed": {
			job: job(failed(14, "BackoffLimitExceeded")), now: 15,
			pod:  newPod(scheduled(), ended(corev1.PodFailed), bad, after("first", terminated(12, 0))),
			want: "failed user NonZeroExit: the benchmark ended with exit code 3",
		},
		"the steps after a benchmark that failed end soon": {
			pod: newPod(scheduled(), bad, after("first", going)), now: 11, want: "",
		},
		"or the run ends without them": {
			pod: newPod(scheduled(), bad, after("first", going)), now: 41, want: "failed user NonZeroExit: the benchmark ended with exit code 3",
		},
		"so it does if a step could not be started": {
			pod: newPod(scheduled(), ok, after("first", terminated(12, 128)), after("second", going)), now: 43,
			want: "failed user StepFailed: step first ended with exit code 128",
		},
		"the image of a step after the benchmark never comes": {
			pod: newPod(scheduled(), benchmarkRuns, after("first", notPulled)), now: 700,
			want: "failed user ImagePullBackOff: container step-first cannot be started: ImagePullBackOff: not found; timed out after 10m0s",
		},
		"the benchmark of a pod with a step after it has no image": {
			pod: newPod(scheduled(), waiting(cluster.ContainerBenchmark, "ContainerCreating", ""), after("first", going)), now: 700,
			want: "failed infra PendingTooLong: preparing the pod on n1; timed out after 10m0s",
		},
		"the deadline passes in a step": {
			job: job(failed(14, "DeadlineExceeded"), deadline(10)), now: 15,
			pod:  newPod(scheduled(), ended(corev1.PodFailed), ok, after("first", terminated(12, 143))),
			want: "failed timeout DeadlineExceeded: timed out after 10s (limits.deadline)",
		},
		"those that run always wait, too": {
			pod: newPod(scheduled(), benchmarkRuns, always("second", going), always("first", going)), now: 20, want: "running: running the benchmark",
		},
		"they do not count as a pod that makes progress": {
			pod: newPod(scheduled(), waiting(cluster.ContainerBenchmark, "ContainerCreating", ""), always("first", going)), now: 700,
			want: "failed infra PendingTooLong: preparing the pod on n1; timed out after 10m0s",
		},
		"the last of the containers runs first": {
			pod: newPod(scheduled(), ok, collectorRunning(), always("second", going), always("first", going)), now: 500,
			want: "running: the benchmark ended (exit code 0); running step first, at the end",
		},
		"then the one before it, after a failure, too": {
			pod: newPod(scheduled(), bad, collectorRunning(), always("second", going), always("first", terminated(12, 1))), now: 500,
			want: "running: the benchmark ended (exit code 3); running step second, at the end",
		},
		"they run after a step that failed before the benchmark, as long as they may": {
			pod: newPod(scheduled(), before("bad", 3), always("first", going)), now: 5000, want: "pending: running step first, at the end",
		},
		"the failure of one is in the message of the run": {
			job: job(complete(14)), pod: newPod(scheduled(), ended(corev1.PodSucceeded), ok, always("second", terminated(13, 0)), always("first", terminated(12, 2))), now: 15,
			want: "succeeded: the benchmark finished (exit code 0); at the end step first ended with exit code 2",
		},
		"and does not hide that of the benchmark": {
			job: job(failed(14, "BackoffLimitExceeded")), pod: newPod(scheduled(), ended(corev1.PodFailed), bad, always("first", terminated(12, 2))), now: 15,
			want: "failed user NonZeroExit: the benchmark ended with exit code 3; at the end step first ended with exit code 2",
		},
		"one that is started again while the benchmark runs ends nothing": {
			pod: newPod(scheduled(), benchmarkRuns, always("first", corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}})), now: 5000,
			want: "running: running the benchmark",
		},
		"a run that is canceled runs them": {
			job: job(jobDeleting(12)), pod: newPod(scheduled(), deleting(600), bad, collectorRunning(), always("first", going)), now: 30, canceled: true,
			want: "canceling: waiting until its objects are deleted; running step first, at the end",
		},
		"a run that is canceled in a step waits for its end": {
			job: job(jobDeleting(12)), pod: newPod(scheduled(), deleting(600), ok, collectorRunning(), after("first", going)), now: 30, canceled: true,
			want: "canceling: waiting until its objects are deleted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := verdict.Observation{
				Seen: cluster.Snapshot{Job: tt.job, Pods: pods(tt.pod)}, Now: at(tt.now).Time, Canceled: tt.canceled,
				PendingDeadline: 10 * time.Minute, Grace: 3 * time.Second,
			}
			if s.Seen.Job == nil {
				s.Seen.Job = job()
			}
			if diff := cmp.Diff(tt.want, verdictLine(verdict.Decide(s))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The benchmark had ended well before the deletion, at second 12.
func TestARunThatIsCanceledWhileAStepRunsIsCanceledAndAfterItIsNot(t *testing.T) {
	for when, want := range map[int]string{
		11: "succeeded: the benchmark finished (exit code 0)",
		13: "canceled CanceledByUser: canceled; its objects are deleted",
	} {
		last := cluster.Snapshot{Job: job(jobDeleting(12)), Pods: pods(newPod(scheduled(), ended(corev1.PodFailed), exitsAt(10, 0), after("first", terminated(when, 0))))}
		s := verdict.Observation{LastSeen: last, GoneSince: at(20).Time, Now: at(30).Time, Canceled: true, Grace: time.Second}
		if diff := cmp.Diff(want, verdictLine(verdict.Decide(s))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
