package watcher

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// endedEarly: a server or worker has ended before the pod that needs it, whose end ends the run.
func endedEarly(s Observation) (Verdict, bool) {
	if j := s.Seen.Job; j == nil || j.DeletionTimestamp != nil {
		return Verdict{}, false
	}
	dead := s
	dead.Seen.Pods = slices.DeleteFunc(slices.Clone(s.Seen.Pods), func(p corev1.Pod) bool { return endsRun(s, p) || !hasEnded(p) })
	if len(dead.Seen.Pods) == 0 {
		return Verdict{}, false
	}
	for _, cause := range []check{platformStopped, disrupted, podRejected, podDeletedAmong(s), initFails, benchmarkFails, sidecarFails} {
		if v, ok := cause(dead); ok {
			return v, true
		}
	}
	p := dead.Seen.Pods[0]
	c, _ := containerStatus(p, cluster.ContainerBenchmark)
	v := failedVerdict(event.ClassUser, event.EndedEarly, time.Time{}, "the %s has ended before the benchmark did", describePod(p))
	if t := c.State.Terminated; t != nil {
		v.Since = t.FinishedAt.Time
	}
	return v, true
}

// neverReady: all pods run, and one of them waited for the others longer than the descriptor allows.
func neverReady(s Observation) (Verdict, bool) {
	targets, since, ok := readinessWait(s)
	until := since.Add(s.ReadyDeadline)
	if !ok || s.Now.Before(until) {
		return Verdict{}, false
	}
	return failedVerdict(event.ClassUser, event.NotReady, until, "%s did not answer within limits.pending_deadline, %s", targets, s.ReadyDeadline), true
}

// readinessWait returns the addresses at which a pod waits for the others, and since when all pods run. It is false if no pod waits, if
// another pod does not run yet, for which there are other rules, and if the descriptor sets no time.
func readinessWait(s Observation) (targets string, since time.Time, ok bool) {
	for _, p := range s.Seen.Pods {
		began, runs := benchmarkStartedAt(p)
		if c, waits := containerStatus(p, cluster.ContainerWait); waits && c.State.Running != nil {
			began, runs, ok, targets = c.State.Running.StartedAt, true, true, readinessTargets(p)
		}
		if !runs {
			return "", time.Time{}, false
		}
		if began.After(since) {
			since = began.Time
		}
	}
	return targets, since, ok && s.ReadyDeadline > 0
}

// readinessTargets returns the addresses at which a pod waits for the others.
func readinessTargets(p corev1.Pod) string {
	var targets []string
	for _, c := range p.Spec.InitContainers {
		for _, arg := range c.Args {
			if c.Name == cluster.ContainerWait && strings.Contains(arg, "://") {
				targets = append(targets, arg)
			}
		}
	}
	if len(targets) > maxNames {
		targets = append(targets[:maxNames], fmt.Sprintf("%d others", len(targets)-maxNames))
	}
	return cmp.Or(strings.Join(targets, ", "), "another of its pods")
}

// otherJobFailed: the job of another role has failed, and none of its pods shows why.
func otherJobFailed(s Observation) (Verdict, bool) {
	for i := range s.Seen.Others {
		one := s
		one.Seen.Job, one.Seen.Pods = &s.Seen.Others[i], nil
		c, ok := cluster.Condition(one.Seen.Job, batchv1.JobFailed)
		if !ok {
			continue
		}
		v, late := deadlinePassed(one)
		if !late {
			v = failedVerdict(event.ClassInfra, event.JobDisappeared, time.Time{}, "the job of the %s failed: %s; its pod is gone",
				one.Seen.Job.Labels[cluster.LabelRole], joinReasonMessage(c.Reason, c.Message))
		}
		v.Since = c.LastTransitionTime.Time
		return debounced(s, v, 8*debounce), true // the status of its pod may come later
	}
	return Verdict{}, false
}

// deletedBeforeFailure: pods were deleted, and no other pod failed.
func deletedBeforeFailure(s Observation) (Verdict, bool) {
	if slices.ContainsFunc(s.Seen.Pods, failedBeforeDeletion) {
		return Verdict{}, false
	}
	return podDeleted(s)
}

// failedBeforeDeletion reports whether a container of a pod failed before the pod's deletion was requested.
func failedBeforeDeletion(p corev1.Pod) bool {
	for _, c := range containerStatuses(p) {
		t := c.State.Terminated
		if t == nil || t.ExitCode == 0 || c.Name == cluster.ContainerCollect {
			continue
		}
		if p.DeletionTimestamp == nil || t.FinishedAt.Time.Before(podDeletionRequestedAt(p)) && !endedByDeletion(p, t) {
			return true
		}
	}
	return false
}

// endedByDeletion reports whether a container of a pod without grace ended by a signal of a deletion, SIGTERM or SIGKILL. The API server
// then has no time of the request any more: for a pod with finalizers, such as those of Jobs, it sets the time to that of the last step,
// once the containers have ended.
func endedByDeletion(p corev1.Pod, t *corev1.ContainerStateTerminated) bool {
	grace := p.DeletionGracePeriodSeconds
	return grace != nil && *grace == 0 && (t.ExitCode == exitSignal+15 || t.ExitCode == exitSignal+9)
}

// podDeleted: a pod was deleted. Its job then deletes the other pods: of several the first is named, or all that may have been the first. The
// time of the request counts, not the end of the grace period.
func podDeleted(s Observation) (Verdict, bool) {
	var deleted []corev1.Pod
	var first time.Time
	for _, p := range s.Seen.Pods {
		if p.DeletionTimestamp == nil {
			continue
		}
		if requestedAt := podDeletionRequestedAt(p); len(deleted) == 0 || requestedAt.Before(first) {
			first = requestedAt
		}
		deleted = append(deleted, p)
	}
	if len(deleted) == 0 {
		return Verdict{}, false
	}
	var names []string
	for _, p := range deleted {
		if hasLostRequestTime(p) || podDeletionRequestedAt(p).Equal(first) {
			names = append(names, "the "+describePod(p))
		}
	}
	if len(names) > maxNames {
		names = append(names[:maxNames], "another of its pods")
	}
	return failedVerdict(event.ClassInfra, event.JobDeleted, first, "somebody deleted %s, and it was not canceled", strings.Join(names, " or ")), true
}

// hasLostRequestTime reports whether the deletion of a pod may have been requested earlier than its times say: kubelet deletes a pod for good
// once its containers have ended, and the API server then has the time of that.
func hasLostRequestTime(p corev1.Pod) bool {
	grace, own := p.DeletionGracePeriodSeconds, p.Spec.TerminationGracePeriodSeconds
	if grace == nil || *grace != 0 || own != nil && *own == 0 {
		return false
	}
	return !slices.ContainsFunc(containerStatuses(p), func(c corev1.ContainerStatus) bool {
		return c.State.Terminated == nil || c.State.Terminated.FinishedAt.After(p.DeletionTimestamp.Time)
	})
}

// podDeletedAmong is podDeleted for the ended pods, with any pod of the run as the first deleted one.
func podDeletedAmong(all Observation) check {
	return func(dead Observation) (Verdict, bool) {
		if _, ok := podDeleted(dead); !ok {
			return Verdict{}, false
		}
		return podDeleted(all)
	}
}

// maxNames is the greatest number of pods that a message names.
const maxNames = 4

// mainPodsOnly returns the observation with only those pods whose end ends the run.
func mainPodsOnly(s Observation) Observation {
	all := s
	s.Seen.Pods = slices.DeleteFunc(slices.Clone(s.Seen.Pods), func(p corev1.Pod) bool { return !endsRun(all, p) })
	s.LastSeen.Pods = slices.DeleteFunc(slices.Clone(s.LastSeen.Pods), func(p corev1.Pod) bool { return !endsRun(all, p) })
	return s
}

// endsRun reports whether a pod has the role of the run's job, whose end ends the run.
func endsRun(s Observation, p corev1.Pod) bool {
	for _, j := range []*batchv1.Job{s.Seen.Job, s.LastSeen.Job} {
		if j != nil && j.Labels[cluster.LabelRole] != "" {
			return p.Labels[cluster.LabelRole] == j.Labels[cluster.LabelRole]
		}
	}
	return true
}

// hasEnded reports whether a pod or its benchmark has ended.
func hasEnded(p corev1.Pod) bool {
	c, ok := containerStatus(p, cluster.ContainerBenchmark)
	return !cluster.Alive(p) || ok && c.State.Terminated != nil
}

// operatorIndex is the label with a pod's number that the MPI operator sets.
const operatorIndex = "training.kubeflow.org/replica-index"

// describePod returns the name of a pod for the user: its role, its number if it has one, and its node.
func describePod(p corev1.Pod) string {
	name := p.Labels[cluster.LabelRole]
	if name == "" || name == cluster.ContainerBenchmark {
		return cluster.ContainerBenchmark
	}
	if index := cmp.Or(p.Annotations[batchv1.JobCompletionIndexAnnotation], p.Labels[operatorIndex]); index != "" {
		name += " " + index
	}
	if p.Spec.NodeName != "" {
		name += " on " + p.Spec.NodeName
	}
	return name
}
