package launch

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

func TestARunOfSeveralRolesIsKeptWhereOneOfThemHasEnded(t *testing.T) {
	ended := corev1.ContainerStatus{Name: cluster.ContainerBenchmark, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
	pod := func(phase corev1.PodPhase, s ...corev1.ContainerStatus) corev1.Pod {
		return corev1.Pod{Status: corev1.PodStatus{Phase: phase, ContainerStatuses: s}}
	}
	for name, tt := range map[string]struct {
		pods []corev1.Pod
		want bool
	}{
		"a worker that ended before the launcher":            {[]corev1.Pod{pod(corev1.PodRunning), pod(corev1.PodFailed)}, true},
		"a server that ended, whose output is still shipped": {[]corev1.Pod{pod(corev1.PodRunning), pod(corev1.PodRunning, ended)}, true},
		"not one all of whose pods run":                      {[]corev1.Pod{pod(corev1.PodRunning), pod(corev1.PodRunning)}, false},
		"not one that waits for nodes":                       {[]corev1.Pod{pod(corev1.PodPending), pod(corev1.PodPending)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := retainable(cluster.Snapshot{Job: &batchv1.Job{}, Pods: tt.pods}, 2); got != tt.want {
				t.Errorf("%t", got)
			}
		})
	}
}

func TestOnlyWhatHasEndedIsKept(t *testing.T) {
	job := func(types ...batchv1.JobConditionType) *batchv1.Job {
		j := &batchv1.Job{}
		for _, t := range types {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue})
		}
		return j
	}
	pods := func(phases ...corev1.PodPhase) (all []corev1.Pod) {
		for _, p := range phases {
			all = append(all, corev1.Pod{Status: corev1.PodStatus{Phase: p}})
		}
		return all
	}
	for name, tt := range map[string]struct {
		seen cluster.Snapshot
		want bool
	}{
		"a job that is complete":                               {cluster.Snapshot{Job: job(batchv1.JobSuccessCriteriaMet, batchv1.JobComplete), Pods: pods(corev1.PodSucceeded)}, true},
		"a job that failed":                                    {cluster.Snapshot{Job: job(batchv1.JobFailureTarget, batchv1.JobFailed)}, true},
		"pods that have ended, before their job says so":       {cluster.Snapshot{Job: job(), Pods: pods(corev1.PodFailed, corev1.PodSucceeded)}, true},
		"a job that fails and makes no more pods":              {cluster.Snapshot{Job: job(batchv1.JobFailureTarget)}, true},
		"not a job that fails while a pod is on its way out":   {cluster.Snapshot{Job: job(batchv1.JobFailureTarget), Pods: pods(corev1.PodFailed, corev1.PodRunning)}, false},
		"not a pod that waits for a node or an image":          {cluster.Snapshot{Job: job(), Pods: pods(corev1.PodPending)}, false},
		"not a pod that runs":                                  {cluster.Snapshot{Job: job(), Pods: pods(corev1.PodRunning)}, false},
		"not a pod of a node that does not answer":             {cluster.Snapshot{Job: job(), Pods: pods(corev1.PodUnknown)}, false},
		"not a job that waits in a queue, and has no pods yet": {cluster.Snapshot{Job: job(batchv1.JobSuspended)}, false},
		"not what is gone":                                     {cluster.Snapshot{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := retainable(tt.seen, 1); got != tt.want {
				t.Errorf("%t", got)
			}
		})
	}
}
