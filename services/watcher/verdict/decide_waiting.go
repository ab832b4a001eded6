package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/mpijob"
	"github.com/benchmark-ai/bai/services/watcher/verdict/objects"
	"github.com/benchmark-ai/bai/services/watcher/verdict/scheduling"
)

// suspended: a queue system of the cluster's has not let the job begin. A run in a queue of Kueue waits for its turn, however long that
// takes.
func suspended(s Observation) (Verdict, bool) {
	if !isSuspended(*s.Seen.Job) || len(s.Seen.Pods) > 0 {
		return Verdict{}, false
	}
	return suspendedVerdict(s), true
}

// suspendedVerdict is the verdict on an attempt whose job waits for its turn.
func suspendedVerdict(s Observation) Verdict {
	j := s.Seen.Job
	since := j.CreationTimestamp.Time
	if c, ok := cluster.Condition(j, batchv1.JobSuspended); ok {
		since = c.LastTransitionTime.Time
	}
	if queue := j.Labels[cluster.LabelKueueQueue]; queue != "" {
		return Verdict{
			Phase: event.PhaseQueued, Reason: event.QueueSuspended,
			Message: "waiting in the cluster's queue " + queue, Since: since,
		}
	}
	return pendingVerdict(s, since, event.ClassInfra, event.Unschedulable, "waiting in the cluster's queue")
}

// podMissing: a job of the run has no pod yet, or is refused one.
func podMissing(s Observation) (Verdict, bool) {
	r, refused := refusedPods(s)
	if len(s.Seen.Pods) > 0 && !refused {
		return Verdict{}, false
	}
	since := s.Seen.Job.CreationTimestamp.Time
	if refused {
		class, message := event.ClassUser, fmt.Sprintf("the cluster refuses %s: %s", r.pods, r.words)
		if strings.Contains(r.words, "no PriorityClass") { // the platform's settings name it
			class = event.ClassPlatform
		}
		if scheduling.Forbidden(r.words) {
			return failedVerdict(class, event.LaunchRefused, since, "%s", message), true
		}
		return refusedVerdict(s, r, class, message), true
	}
	if s.Seen.Job.Annotations[cluster.AnnotationUnseen] != "" {
		return Verdict{
			Phase: event.PhaseRunning, Message: "running the objects of the manifest, whose pods the platform does not see",
			Since: since,
		}, true
	}
	if selector := s.Seen.Job.Annotations[cluster.AnnotationPodSelector]; selector != "" && !hadPods(s) {
		return Verdict{
			Phase: event.PhaseRunning, Message: "running the objects of the manifest; no pod has the labels " + selector, Since: since,
		}, true
	}
	if hadPods(s) { // the pods are gone, and the job's status is about to show the result
		return Verdict{}, true
	}
	return pendingVerdict(s, since, event.ClassInfra, event.PendingTooLong, "waiting for its pod"), true
}

// refusedVerdict is the verdict on an attempt whose pods are refused for now.
func refusedVerdict(s Observation, r refusal, class event.Class, message string) Verdict {
	if !scheduling.OverQuota(r.words) {
		return pendingVerdict(s, s.Seen.Job.CreationTimestamp.Time, class, event.LaunchRefused, message)
	}
	if others := withNode(othersOf(s)); len(others) > 0 {
		return nodeWaitVerdict(s, others, "waiting for the namespace's quota")
	}
	v := pendingVerdict(s, s.Seen.Job.CreationTimestamp.Add(s.NodeWait.total(s.Now)), class, event.LaunchRefused, message)
	if v.Phase != event.PhaseFinished {
		v.Since, v.RecheckAt = s.Seen.Job.CreationTimestamp.Time, earlier(v.RecheckAt, s.Now.Add(nodeWaitRecheck))
	}
	return v
}

// hadPods reports whether a pod of the job was seen, or the job's status counts one.
func hadPods(s Observation) bool {
	j := s.Seen.Job.Status
	return len(s.LastSeen.Pods) > 0 || j.Active+j.Failed+j.Succeeded > 0 || j.UncountedTerminatedPods != nil
}

// refusal is that the cluster refuses pods, and why.
type refusal struct{ pods, words string }

// refusedPods returns the last event about a job of the run that lacks pods because the cluster refuses them.
func refusedPods(s Observation) (refusal, bool) {
	jobs := append([]batchv1.Job{*s.Seen.Job}, s.Seen.Others...)
	all := 0
	for i := range jobs {
		all += wantedPods(jobs[i])
	}
	for _, e := range slices.Backward(s.Seen.Events) {
		i := slices.IndexFunc(jobs, func(j batchv1.Job) bool { return j.Name == e.InvolvedObject.Name })
		if e.Reason != "FailedCreate" || i < 0 || e.InvolvedObject.Kind == mpijob.Kind && len(s.Seen.Pods) > 0 {
			continue
		}
		switch lacks, newest := missingPods(jobs[i], s.Seen.Pods); {
		case lacks <= 0 || objects.EventTime(e).Before(newest): // the pods were created later
		case all == 1:
			return refusal{"its pod", e.Message}, true
		default:
			return refusal{fmt.Sprintf("%d of its %d pods", lacks, all), e.Message}, true
		}
	}
	return refusal{}, false
}

// missingPods returns how many pods a job lacks, and when its newest pod was created.
func missingPods(j batchv1.Job, pods []corev1.Pod) (n int, newest time.Time) {
	n = wantedPods(j)
	for _, p := range pods {
		if p.Labels[batchv1.JobNameLabel] != j.Name {
			continue
		}
		n--
		if p.CreationTimestamp.After(newest) {
			newest = p.CreationTimestamp.Time
		}
	}
	return n, newest
}

// wantedPods is how many pods a job is to have at a time.
func wantedPods(j batchv1.Job) int {
	if j.Spec.Parallelism == nil {
		return 1
	}
	return int(*j.Spec.Parallelism)
}

// unschedulable: the scheduler found no node for a pod.
func unschedulable(s Observation) (Verdict, bool) {
	without := withoutNode(s)
	if len(without) == 0 {
		return Verdict{}, false
	}
	p, stuck := firstStuck(s, without)
	if !stuck {
		p = without[0]
	}
	v := unscheduledVerdict(s, p, len(without))
	if !stuck && v.Reason != event.NodeScaling {
		return nodeWaitVerdict(s, occupants(s, p), "waiting"), true
	}
	return v, true
}

// unscheduledVerdict is the verdict on an attempt with so many pods without a node, of which p is the first whose wait counts.
func unscheduledVerdict(s Observation, p corev1.Pod, without int) Verdict {
	c, _ := objects.Condition(p, corev1.PodScheduled)
	pods, class, can := "its pod", event.ClassInfra, "can take"
	if len(s.Seen.Pods) > 1 {
		pods = fmt.Sprintf("%d of its %d pods", without, len(s.Seen.Pods))
	}
	switch {
	case scheduling.Unplaceable(c.Message):
		class = event.ClassUser
	case scheduling.TooLarge(c.Message):
		class, can = event.ClassUser, "is large enough for"
	}
	lacking, tooFew := scheduling.LackingNodes(c.Message, p, without, len(s.Seen.Pods))
	if tooFew {
		class = event.ClassUser
	}
	scaler := scheduling.ReadAutoscaler(objects.EventsOf(s.Seen.Events, p.Name), s.Now)
	began := objects.TimeOrCreation(c.LastTransitionTime, p).Add(scaler.ScalingTime + s.NodeWait.total(s.Now))
	if scaler.ScaleUpMessage != "" {
		v := pendingVerdict(s, began, class, event.Unschedulable,
			fmt.Sprintf("a node is being added for %s: %s", pods, scaler.ScaleUpMessage))
		if v.Phase != event.PhaseFinished {
			v.Reason, v.Since, v.RecheckAt = event.NodeScaling, scaler.Since, scaler.Until
		}
		return v
	}
	message := fmt.Sprintf("no node %s %s: %s%s", can, pods, lacking, objects.JoinReasonMessage(c.Reason, c.Message))
	if scaler.RefusalMessage != "" {
		message += "; the autoscaler adds none: " + scaler.RefusalMessage
	}
	v := pendingVerdict(s, began, class, event.Unschedulable, message)
	if v.Phase != event.PhaseFinished {
		v.Since = objects.TimeOrCreation(c.LastTransitionTime, p)
		v.RecheckAt = earlier(v.RecheckAt, s.Now.Add(nodeWaitRecheck))
	}
	return v
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// containerWaits: a container cannot begin, and the benchmark has not, or the container is that of a step after it.
func containerWaits(s Observation) (Verdict, bool) {
	begun := allBegun(s)
	for _, p := range s.Seen.Pods {
		for _, c := range objects.Containers(p) {
			if _, step := objects.StepName(c.Name); begun && (!step || objects.RunsAlways(p, c.Name)) {
				continue
			}
			if v, ok := containerBlocked(s, p, c); ok {
				return v, true
			}
		}
	}
	return Verdict{}, false
}

// containerBlocked is the verdict on a container that cannot start. The user is at fault for the benchmark's own container, the platform
// for the others.
func containerBlocked(s Observation, p corev1.Pod, c corev1.ContainerStatus) (Verdict, bool) {
	w := c.State.Waiting
	if w == nil {
		return Verdict{}, false
	}
	reason, hopeless := waitingReason(w.Reason)
	detail := objects.JoinReasonMessage(w.Reason, w.Message)
	if reason == "" {
		if reason, detail = creationFailure(s, p, c); reason == "" {
			return Verdict{}, false
		}
	}
	class := event.ClassUser
	if _, step := objects.StepName(c.Name); c.Name != cluster.ContainerBenchmark && !step {
		class = event.ClassPlatform
	}
	message := fmt.Sprintf("container %s cannot be started: %s", c.Name, detail)
	if hopeless {
		return failedVerdict(class, reason, objects.Scheduled(p), "%s", message), true
	}
	return pendingVerdict(s, objects.Scheduled(p), class, reason, message), true
}

// creationFailure returns why a node could not create a container, in its words: the event comes before the pod's status, which waits for
// the next try.
func creationFailure(s Observation, p corev1.Pod, c corev1.ContainerStatus) (reason event.Reason, detail string) {
	if !objects.IsCreating(c) || objects.HasStarted(c) || s.Now.Before(objects.Scheduled(p).Add(8*debounce)) {
		return "", ""
	}
	warnings := slices.DeleteFunc(objects.EventsOf(s.Seen.Events, p.Name), func(e corev1.Event) bool {
		return e.Type != corev1.EventTypeWarning || !strings.HasSuffix(e.InvolvedObject.FieldPath, "{"+c.Name+"}") ||
			objects.EventTime(e).Before(objects.Scheduled(p))
	})
	e, _ := objects.LastEvent(warnings, "Failed")
	detail, ok := strings.CutPrefix(e.Message, "Error: ")
	if !ok {
		return "", ""
	}
	reason, _ = waitingReason(detail)
	if reason == "" {
		return event.ConfigError, detail
	}
	for _, e := range slices.Backward(warnings) { // the message of the pull has more details
		if strings.HasPrefix(e.Message, "Failed to pull image") {
			return reason, objects.JoinReasonMessage(detail, e.Message)
		}
	}
	return reason, detail
}

// volumeFails: a volume cannot be mounted, according to the recent events. The mounted object may be created a moment after the pod.
func volumeFails(s Observation) (Verdict, bool) {
	for _, p := range s.Seen.Pods {
		if !slices.ContainsFunc(objects.Containers(p), objects.IsCreating) ||
			slices.ContainsFunc(objects.Containers(p), objects.HasStarted) {
			continue
		}
		for _, reason := range []string{"FailedMount", "FailedAttachVolume"} {
			if e, ok := objects.LastEvent(objects.EventsOf(s.Seen.Events, p.Name), reason); ok {
				class, message := mountFailure(e.Message)
				return debounced(s, pendingVerdict(s, objects.Scheduled(p), class, event.VolumeError, message), 8*debounce), true
			}
		}
	}
	return Verdict{}, false
}

// mountFailure returns whose fault a node's message about a volume reports, and what to tell the user. A user names the
// Secrets of files.
func mountFailure(message string) (event.Class, string) {
	if strings.Contains(message, "\""+cluster.VolumeSecretFile) {
		return event.ClassUser, "a file of env.secret_files cannot be mounted: " + message
	}
	return event.ClassInfra, "a volume cannot be mounted: " + message
}

// debounce is how long a transient state must last to be reported.
const debounce = 250 * time.Millisecond

// idleTooLong: a pod made no progress for longer than it may wait.
func idleTooLong(s Observation) (Verdict, bool) {
	p, since, ok := longestIdle(s)
	if !ok || s.Now.Before(since.Add(s.PendingDeadline)) {
		return Verdict{}, false
	}
	message := preparationMessage([]corev1.Pod{p})
	if c := lastWarning(s, p); c != "" {
		message += "; " + c
	}
	return pendingVerdict(s, since, event.ClassInfra, event.PendingTooLong, message), true
}

// longestIdle returns the pod without progress for the longest time, and since when.
func longestIdle(s Observation) (idlest corev1.Pod, since time.Time, ok bool) {
	if allBegun(s) {
		return idlest, since, false
	}
	for _, p := range s.Seen.Pods {
		if at, is := objects.IdleSince(p); is && (!ok || at.Before(since)) {
			idlest, since, ok = p, at, true
		}
	}
	return idlest, since, ok
}

// lastWarning returns the last warning about a pod that has its node.
func lastWarning(s Observation, p corev1.Pod) string {
	for _, e := range slices.Backward(objects.EventsOf(s.Seen.Events, p.Name)) {
		if e.Type == corev1.EventTypeWarning && e.Reason != "FailedScheduling" && !objects.EventTime(e).Before(objects.Scheduled(p)) {
			return objects.JoinReasonMessage(e.Reason, e.Message)
		}
	}
	return ""
}

// preparing: the pod exists, and its benchmark has not started.
func preparing(s Observation) (Verdict, bool) {
	if phase(s) == event.PhaseRunning {
		return Verdict{}, false
	}
	v := Verdict{Phase: event.PhasePending, Message: preparationMessage(s.Seen.Pods), Since: objects.Scheduled(s.Seen.Pods[0])}
	complaints := ""
	for _, p := range s.Seen.Pods {
		if c := lastWarning(s, p); c != "" {
			complaints = strings.TrimSpace(describeLocation(p) + ": " + c)
		}
		v.Message, v.Since = preparationOf(s, p, v.Message, v.Since)
	}
	if complaints != "" {
		v.Message += "; " + complaints
	}
	v.RecheckAt = giveUpAt(s)
	return debounced(s, v, debounce), true
}

// preparationOf returns the message about the preparation of a pod, and since when it is true: the given ones if the pod says nothing
// newer.
func preparationOf(s Observation, p corev1.Pod, message string, since time.Time) (string, time.Time) {
	if e, ok := lastImageEvent(objects.EventsOf(s.Seen.Events, p.Name)); ok && objects.EventTime(e).After(since) &&
		!slices.ContainsFunc(p.Status.ContainerStatuses, objects.HasStarted) {
		message, since = strings.TrimSpace(describeLocation(p)+": "+e.Message), objects.EventTime(e)
	}
	if c, ok := objects.Container(p, cluster.ContainerPull); ok && c.State.Running != nil {
		message, since = "copying its data sets to the machine", c.State.Running.StartedAt.Time
	}
	if step, began, ok := objects.StepBefore(p); ok {
		message, since = step, began
	}
	if step, ok := objects.StepAtEnd(p); ok {
		message = step
	}
	if c, ok := objects.Container(p, cluster.ContainerWait); ok && c.State.Running != nil {
		message, since = readinessMessage(s), c.State.Running.StartedAt.Time
	}
	return message, since
}

// giveUpAt returns until when a pod may be prepared, zero if there is no limit.
func giveUpAt(s Observation) time.Time {
	if _, since, ok := readinessWait(s); ok {
		return since.Add(s.ReadyDeadline)
	}
	if _, since, ok := longestIdle(s); ok {
		return since.Add(s.PendingDeadline)
	}
	return time.Time{}
}

// preparationMessage returns a message with the nodes of the pods, as far as they have any.
func preparationMessage(pods []corev1.Pod) string {
	nodes := map[string]bool{}
	for _, p := range pods {
		if p.Spec.NodeName != "" {
			nodes[p.Spec.NodeName] = true
		}
	}
	names := slices.Sorted(maps.Keys(nodes))
	switch {
	case len(names) == 0 && len(pods) == 1 && pods[0].Spec.SchedulerName != "":
		return fmt.Sprintf("waiting for the scheduler %q", pods[0].Spec.SchedulerName)
	case len(names) == 0:
		return "preparing the pod"
	case len(pods) == 1:
		return "preparing the pod on " + names[0]
	case len(names) > maxNames:
		names = append(names[:maxNames], fmt.Sprintf("%d others", len(nodes)-maxNames))
	}
	return fmt.Sprintf("preparing %d pods on %s", len(pods), strings.Join(names, ", "))
}

// describeLocation returns the node of a pod, and its role in the run if there are others.
func describeLocation(p corev1.Pod) string {
	if name := objects.Describe(p); name != cluster.ContainerBenchmark {
		return "the " + name
	}
	return p.Spec.NodeName
}

// lastImageEvent returns the last event about the images of a pod. It skips images that the node had already.
func lastImageEvent(events []corev1.Event) (corev1.Event, bool) {
	for _, e := range slices.Backward(events) {
		switch {
		case e.Reason == "Pulled" && strings.Contains(e.Message, "already present"):
		case e.Reason == "Pulling", e.Reason == "Pulled":
			return e, true
		}
	}
	return corev1.Event{}, false
}

// debounced returns v once it has lasted for d, and an empty verdict before. If the cluster's clock is ahead, v counts at once.
func debounced(s Observation, v Verdict, d time.Duration) Verdict {
	if until := v.Since.Add(d); s.Now.Before(until) && !s.Now.Before(v.Since) {
		return Verdict{RecheckAt: until}
	}
	return v
}

// pendingVerdict is the verdict on a wait that may never end: the run stays pending until the deadline, then it has failed.
func pendingVerdict(s Observation, since time.Time, class event.Class, reason event.Reason, message string) Verdict {
	until := since.Add(s.PendingDeadline)
	if !s.Now.Before(until) {
		return failedVerdict(class, reason, until, "%s; timed out after %s", message, s.PendingDeadline)
	}
	v := Verdict{Phase: phase(s), Reason: reason, Message: message, Since: since, RecheckAt: until}
	if reason == event.PendingTooLong {
		v.Reason = "" // it is not late yet
	}
	return v
}
