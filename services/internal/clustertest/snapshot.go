package clustertest

import (
	"encoding/json"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// condition returns a Job's condition of a type, or the zero value if none is true.
func condition(j *batchv1.Job, t batchv1.JobConditionType) batchv1.JobCondition {
	for _, c := range j.Status.Conditions {
		if c.Type == t && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return batchv1.JobCondition{}
}

func hasEnded(s cluster.Snapshot) bool {
	return s.Job != nil && (condition(s.Job, batchv1.JobComplete).Type != "" || condition(s.Job, batchv1.JobFailed).Type != "")
}

// containerState returns the state of a container of the first pod.
func containerState(s cluster.Snapshot, container string) corev1.ContainerState {
	return containerStatus(s, container).State
}

func containerStatus(s cluster.Snapshot, container string) corev1.ContainerStatus {
	for _, p := range s.Pods {
		for _, c := range append(append([]corev1.ContainerStatus(nil), p.Status.InitContainerStatuses...), p.Status.ContainerStatuses...) {
			if c.Name == container {
				return c
			}
		}
	}
	return corev1.ContainerStatus{}
}

// isRunning reports whether the benchmark runs.
func isRunning(s cluster.Snapshot) bool {
	return containerState(s, cluster.ContainerBenchmark).Running != nil
}

// result is the part of a job's result that is the same in every cluster.
type result struct {
	Succeeded, Failed int32
	Condition         batchv1.JobConditionType
	Reason            string
	Phase             corev1.PodPhase
	Exit              int32
	ExitReason        string
}

// resultOf returns how a job ended, by its benchmark's container.
func resultOf(s cluster.Snapshot) result {
	r := result{Succeeded: s.Job.Status.Succeeded, Failed: s.Job.Status.Failed}
	for _, t := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if c := condition(s.Job, t); c.Type != "" {
			r.Condition, r.Reason = c.Type, c.Reason
		}
	}
	if len(s.Pods) > 0 {
		r.Phase = s.Pods[0].Status.Phase
	}
	if end := containerState(s, cluster.ContainerBenchmark).Terminated; end != nil {
		r.Exit, r.ExitReason = end.ExitCode, end.Reason
	}
	return r
}

func describe(s cluster.Snapshot) string {
	var pods []corev1.PodStatus
	for _, p := range s.Pods {
		pods = append(pods, p.Status)
	}
	var job *batchv1.JobStatus
	if s.Job != nil {
		job = &s.Job.Status
	}
	b, err := json.Marshal(map[string]any{"job": job, "pods": pods, "events": s.Events})
	return fmt.Sprintf("%s %v", b, err)
}
