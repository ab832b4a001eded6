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

// endsEarly: a pod that the one whose end ends the run needs, a server or a
// worker, has ended before it.
func endsEarly(s Sight) (Verdict, bool) {
	if j := s.Seen.Job; j == nil || j.DeletionTimestamp != nil {
		return Verdict{}, false
	}
	dead := s
	dead.Seen.Pods = slices.DeleteFunc(slices.Clone(s.Seen.Pods), func(p corev1.Pod) bool { return ends(s, p) || !hasEnded(p) })
	if len(dead.Seen.Pods) == 0 {
		return Verdict{}, false
	}
	for _, cause := range []check{platformStopped, disrupted, turnedAway, removedWith(s), initFails, benchmarkFails, sidecarFails} {
		if v, ok := cause(dead); ok {
			return v, true
		}
	}
	p := dead.Seen.Pods[0]
	c, _ := container(p, cluster.ContainerBenchmark)
	v := failure(event.ClassUser, event.EndedEarly, time.Time{}, "the %s has ended before the benchmark did", who(p))
	if t := c.State.Terminated; t != nil {
		v.Since = t.FinishedAt.Time
	}
	return v, true
}

// neverReady: what a pod needs of the others, which all run, is not ready in the time
// that the descriptor gives.
func neverReady(s Sight) (Verdict, bool) {
	targets, since, ok := awaited(s)
	until := since.Add(s.ReadyDeadline)
	if !ok || s.Now.Before(until) {
		return Verdict{}, false
	}
	return failure(event.ClassUser, event.NotReady, until, "%s did not answer within limits.pending_deadline, %s", targets, s.ReadyDeadline), true
}

// awaited returns what a pod asks whether the others are ready, and since when all of
// these run. It is false where nobody waits, where another pod does not run yet, for
// which there are other rules, and where the descriptor gives no time.
func awaited(s Sight) (targets string, since time.Time, ok bool) {
	for _, p := range s.Seen.Pods {
		began, runs := started(p)
		if c, waits := container(p, cluster.ContainerWait); waits && c.State.Running != nil {
			began, runs, ok, targets = c.State.Running.StartedAt, true, true, asks(p)
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

// asks returns the addresses that a pod asks whether the others are ready.
func asks(p corev1.Pod) string {
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

// otherFails: the job of another role has failed, and no pod of it says why.
func otherFails(s Sight) (Verdict, bool) {
	for i := range s.Seen.Others {
		one := s
		one.Seen.Job, one.Seen.Pods = &s.Seen.Others[i], nil
		c, ok := cluster.Condition(one.Seen.Job, batchv1.JobFailed)
		if !ok {
			continue
		}
		v, late := deadlinePassed(one)
		if !late {
			v = failure(event.ClassInfra, event.JobDisappeared, time.Time{}, "the job of the %s failed: %s; its pod is gone",
				one.Seen.Job.Labels[cluster.LabelRole], words(c.Reason, c.Message))
		}
		v.Since = c.LastTransitionTime.Time
		return lasting(s, v, 8*hush), true // its pod may be heard of after it
	}
	return Verdict{}, false
}

// cutShort: somebody deleted pods, and no other failed.
func cutShort(s Sight) (Verdict, bool) {
	if slices.ContainsFunc(s.Seen.Pods, failedItself) {
		return Verdict{}, false
	}
	return removed(s)
}

// failedItself reports whether a container of a pod failed before anybody asked
// that the pod ends.
func failedItself(p corev1.Pod) bool {
	for _, c := range statuses(p) {
		t := c.State.Terminated
		if t == nil || t.ExitCode == 0 || c.Name == cluster.ContainerCollect {
			continue
		}
		if p.DeletionTimestamp == nil || t.FinishedAt.Time.Before(deletionAsked(p)) && !endedByDeletion(p, t) {
			return true
		}
	}
	return false
}

// endedByDeletion reports whether a container of a pod without grace ended by a
// signal that a deletion sends, TERM or KILL. The API server then no longer tells when the
// deletion was asked for: of a pod with finalizers, as those of Jobs have, it sets
// the time to that of the last step, once the containers have ended.
func endedByDeletion(p corev1.Pod, t *corev1.ContainerStateTerminated) bool {
	grace := p.DeletionGracePeriodSeconds
	return grace != nil && *grace == 0 && (t.ExitCode == exitSignal+15 || t.ExitCode == exitSignal+9)
}

// removed: somebody deletes a pod. Its job then deletes those beside it: of
// several the first is meant, or all of the same second. When the deletion was asked
// for counts, not when its grace is over: a pod that has ended has none left.
func removed(s Sight) (Verdict, bool) {
	var first time.Time
	var names []string
	for _, p := range s.Seen.Pods {
		if p.DeletionTimestamp == nil {
			continue
		}
		switch asked := deletionAsked(p); {
		case len(names) > 0 && asked.After(first):
		case len(names) > 0 && asked.Equal(first):
			names = append(names, "the "+who(p))
		default:
			first, names = asked, []string{"the " + who(p)}
		}
	}
	if len(names) == 0 {
		return Verdict{}, false
	}
	if len(names) > maxNames {
		names = append(names[:maxNames], "another of its pods")
	}
	return failure(event.ClassInfra, event.JobDeleted, first, "somebody deleted %s, and it was not canceled", strings.Join(names, " or ")), true
}

// removedWith is removed, where any of all that is seen may have been first.
func removedWith(all Sight) check {
	return func(dead Sight) (Verdict, bool) {
		if _, ok := removed(dead); !ok {
			return Verdict{}, false
		}
		return removed(all)
	}
}

// maxNames is how many pods are named where any of them may be meant.
const maxNames = 4

// main returns the sight of those pods alone whose end ends the run.
func main(s Sight) Sight {
	all := s
	s.Seen.Pods = slices.DeleteFunc(slices.Clone(s.Seen.Pods), func(p corev1.Pod) bool { return !ends(all, p) })
	s.Before.Pods = slices.DeleteFunc(slices.Clone(s.Before.Pods), func(p corev1.Pod) bool { return !ends(all, p) })
	return s
}

// ends reports whether a pod is of the role whose end ends the run: that of the
// run's job.
func ends(s Sight, p corev1.Pod) bool {
	for _, j := range []*batchv1.Job{s.Seen.Job, s.Before.Job} {
		if j != nil && j.Labels[cluster.LabelRole] != "" {
			return p.Labels[cluster.LabelRole] == j.Labels[cluster.LabelRole]
		}
	}
	return true
}

// hasEnded reports whether what a pod runs has ended.
func hasEnded(p corev1.Pod) bool {
	c, ok := container(p, cluster.ContainerBenchmark)
	return !cluster.Alive(p) || ok && c.State.Terminated != nil
}

// operatorIndex is the label with a pod's number where the MPI operator made it.
const operatorIndex = "training.kubeflow.org/replica-index"

// who names a pod by what it is to its run: its role, its number where it has
// one, and where it is.
func who(p corev1.Pod) string {
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
