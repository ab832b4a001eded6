package download

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// Task is a download by a Job. Its document has the source and the Job's own progress
// reports, and exists until the download is done.
type Task struct {
	Source      dataset.Source `json:"source"`
	RequestedAt time.Time      `json:"asked"` // answers of the source count from this time on
	Number      int            `json:"number"`

	Done      int64 `json:"done"`
	Total     int64 `json:"total"` // -1 if unknown
	StoreFull bool  `json:"full,omitempty"`

	WaitReason string `json:"why,omitempty"` // reason why no data arrive at present
}

// TransferFlag is the flag that makes a fetcher process do one task and exit.
const TransferFlag = "-transfer"

// annotationSource is the annotation with the source of a Job, for people.
const annotationSource = "benchmark-ai.dev/source"

// JobOf returns the Job of a task: the template with a name, labels, the task's flag
// and a deadline. The Job is tried once.
func JobOf(template batchv1.Job, key string, t Task, name string, deadline time.Duration) *batchv1.Job {
	j := template.DeepCopy()
	j.APIVersion, j.Kind, j.Name = "batch/v1", "Job", jobName(key, t.Number)
	if j.Labels == nil {
		j.Labels = make(map[string]string)
	}
	if j.Spec.Template.Labels == nil {
		j.Spec.Template.Labels = make(map[string]string)
	}
	for _, labels := range []map[string]string{j.Labels, j.Spec.Template.Labels} {
		labels[cluster.LabelRun], labels[cluster.LabelAttempt] = jobRun(key), strconv.Itoa(t.Number)
	}
	if j.Annotations == nil {
		j.Annotations = make(map[string]string)
	}
	j.Annotations[annotationSource] = name
	once, seconds := int32(0), int64(deadline/time.Second)
	j.Spec.BackoffLimit, j.Spec.ActiveDeadlineSeconds = &once, &seconds
	j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	for i := range j.Spec.Template.Spec.Containers[:1] {
		c := &j.Spec.Template.Spec.Containers[i]
		c.Args = append(c.Args, TransferFlag, key)
		c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	}
	return j
}

func jobRun(key string) string              { return fmt.Sprintf("fetch-%.26s", key) }
func jobName(key string, number int) string { return fmt.Sprintf("bai-fetch-%.26s-%d", key, number) }
func taskKey(key string) string             { return "job/" + key }
func jobRef(j *batchv1.Job, n int) cluster.Ref {
	return cluster.Ref{Run: j.Labels[cluster.LabelRun], Attempt: n, Scope: j.Namespace, Job: j.Name}
}

// CheckJob returns the fault of a template for Jobs, or nil.
func CheckJob(j batchv1.Job) error {
	switch {
	case j.Namespace == "":
		return fmt.Errorf("metadata.namespace: is needed")
	case len(j.Spec.Template.Spec.Containers) != 1:
		return fmt.Errorf("spec.template.spec.containers: has %d, want the fetcher alone", len(j.Spec.Template.Spec.Containers))
	case j.Spec.Template.Spec.Containers[0].Image == "":
		return fmt.Errorf("spec.template.spec.containers[0].image: is needed: write it, or set BAI_FETCHER_IMAGE to the image of the fetcher")
	}
	return nil
}

// jobPhase is the phase of a Job.
type jobPhase int

// Phases of a Job.
const (
	jobRunning jobPhase = iota // running or not started yet
	jobSucceeded
	jobFailed
	jobGone
)

// Limits of the time without a running container.
const (
	startGrace   = 2 * time.Minute  // time until users are informed
	startTimeout = 10 * time.Minute // time until the Job is replaced by another
)

// jobStatus returns the phase of a Job that has been supervised for age, and the reason
// if it failed, preferably from its own termination message. A Job that has not started
// has a reason after startGrace, and has failed after startTimeout.
func jobStatus(seen cluster.Snapshot, age time.Duration) (jobPhase, string) {
	if seen.Job == nil {
		return jobGone, ""
	}
	for _, c := range seen.Job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			return jobSucceeded, ""
		case c.Type == batchv1.JobFailed:
			return jobFailed, terminationMessage(seen.Pods, c.Reason+": "+c.Message)
		}
	}
	if age < startGrace || started(seen) {
		return jobRunning, ""
	}
	why := "its fetch job does not start: " + startBlocker(seen)
	if age < startTimeout || suspended(seen.Job) {
		return jobRunning, why
	}
	return jobFailed, fmt.Sprintf("%s; given up after %s", why, startTimeout)
}

// started reports whether a container of a Job is running or was.
func started(seen cluster.Snapshot) bool {
	if s := seen.Job.Status; s.Ready != nil && *s.Ready > 0 || s.Succeeded+s.Failed > 0 {
		return true
	}
	for _, p := range seen.Pods {
		for _, c := range p.Status.ContainerStatuses {
			if c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil {
				return true
			}
		}
	}
	return false
}

func suspended(j *batchv1.Job) bool { return j.Spec.Suspend != nil && *j.Spec.Suspend }

// startBlocker returns the cluster's reason why no container of a Job runs.
func startBlocker(seen cluster.Snapshot) string {
	if suspended(seen.Job) {
		return "a queue of the cluster's has not let it begin"
	}
	if len(seen.Pods) == 0 {
		return fmt.Sprintf("it has no pod; kubectl describe job %s --namespace %s says why", seen.Job.Name, seen.Job.Namespace)
	}
	for _, p := range seen.Pods {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				return joinReason(c.Reason, c.Message)
			}
		}
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if w := c.State.Waiting; w != nil && w.Message != "" {
				return joinReason(w.Reason, w.Message)
			}
		}
	}
	p := seen.Pods[0]
	return fmt.Sprintf("pod %s is being prepared; kubectl describe pod %s --namespace %s says what is missing", p.Name, p.Name, p.Namespace)
}

func joinReason(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

// terminationMessage returns the termination message of a failed pod, or otherwise if
// there is none.
func terminationMessage(pods []corev1.Pod, otherwise string) string {
	for _, p := range pods {
		for _, c := range p.Status.ContainerStatuses {
			if t := c.State.Terminated; t != nil && t.ExitCode != 0 && t.Message != "" {
				return t.Message
			}
		}
	}
	return otherwise
}
