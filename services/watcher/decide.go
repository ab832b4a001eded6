package watcher

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// Sight is what is known of a launched attempt at one time.
type Sight struct {
	Seen     cluster.Seen
	Before   cluster.Seen // the last time that something of it was there
	Gone     time.Time    // since when, by live looks, nothing of it is there; zero where something is
	Canceled bool         // the run has a cancel mark
	Now      time.Time

	// PendingDeadline is how long the attempt may wait for what may never come.
	PendingDeadline time.Duration
	// Grace is how long nothing of it may be there before that is believed.
	Grace time.Duration
}

// Verdict is what an attempt's state means for its run.
type Verdict struct {
	Phase   event.Phase // PhaseFinished: the attempt is over; empty: nothing can be said now
	Outcome event.Outcome
	Class   event.Class
	Reason  event.Reason
	Message string    // for the user
	Since   time.Time // when what it says began; zero where the cluster does not tell
	Again   time.Time // when to look again though nothing changes; zero for never
}

// check is one rule. It is false where it does not apply.
type check func(Sight) (Verdict, bool)

// Decide returns what the first check that applies says.
func Decide(s Sight) Verdict {
	for _, c := range []check{
		gone,
		canceling,
		complete,
		failed,
		cutOff,
		endsEarly,
		deleted,
		suspended,
		withoutPod,
		unschedulable,
		containerWaits,
		volumeFails,
		preparing,
		running,
	} {
		if v, ok := c(s); ok {
			return v
		}
	}
	return Verdict{Phase: event.PhasePending, Message: "its pod is being prepared"}
}

// gone: nothing of the attempt is there. What a user canceled has ended so.
// Anything else is believed only once it has been so for a while.
func gone(s Sight) (Verdict, bool) {
	if s.Seen.Job != nil || len(s.Seen.Pods) > 0 {
		return Verdict{}, false
	}
	switch believed := s.Gone.Add(s.Grace); {
	case s.Gone.IsZero():
		return Verdict{}, true
	case s.Canceled:
		return Verdict{Phase: event.PhaseFinished, Outcome: event.Canceled, Reason: event.CanceledByUser, Message: "canceled; nothing of it is left in the cluster"}, true
	case s.Now.Before(believed):
		return Verdict{Again: believed}, true
	}
	if j := s.Before.Job; j != nil && j.DeletionTimestamp != nil || j == nil && len(s.Before.Pods) > 0 { // it went before its pods
		return failure(event.ClassInfra, event.JobDeleted, s.Gone, "somebody deleted its job, and it was not canceled"), true
	}
	return failure(event.ClassInfra, event.JobDisappeared, s.Gone, "its job is not in the cluster any more, and nobody of the platform deleted it"), true
}

// canceling: the run is to end, and its objects are still there. What has ended
// well before they are gone has ended well.
func canceling(s Sight) (Verdict, bool) {
	if _, ok := condition(s.Seen.Job, batchv1.JobComplete); ok || !s.Canceled {
		return Verdict{}, false
	}
	v := Verdict{Phase: event.PhaseCanceling, Message: "waits until its objects are gone"}
	for _, p := range s.Seen.Pods {
		if p.DeletionTimestamp == nil || hasEnded(p) {
			continue
		}
		if late := p.DeletionTimestamp.Add(s.Grace); s.Now.Before(late) {
			v.Again = late
			continue
		}
		return Verdict{
			Phase: event.PhaseCanceling, Reason: event.NodeLost, Since: p.DeletionTimestamp.Time,
			Message: fmt.Sprintf("waits for node %s, which has not said that the %s ended; it is given up before long", p.Spec.NodeName, who(p)),
		}, true
	}
	return v, true
}

// complete: the job says that all is well, and so does the benchmark.
func complete(s Sight) (Verdict, bool) {
	c, ok := condition(s.Seen.Job, batchv1.JobComplete)
	if !ok {
		return Verdict{}, false
	}
	if v, bad := benchmarkFails(main(s)); bad { // others may be on their way out
		return v, true
	}
	return Verdict{Phase: event.PhaseFinished, Outcome: event.Succeeded, Message: "the benchmark has ended well", Since: c.LastTransitionTime.Time}, true
}

// failed: the job has failed, and all of its pods have ended.
func failed(s Sight) (Verdict, bool) {
	c, ok := condition(s.Seen.Job, batchv1.JobFailed)
	if !ok {
		if c, ok = condition(s.Seen.Job, batchv1.JobFailureTarget); !ok || slices.ContainsFunc(s.Seen.Pods, alive) {
			return Verdict{}, false
		}
	}
	if len(s.Seen.Pods) == 0 {
		s.Seen.Pods = s.Before.Pods
	}
	for _, cause := range []check{
		deadlinePassed,
		disrupted,
		turnedAway,
		initFails,
		benchmarkFails,
		sidecarFails,
	} {
		if v, ok := cause(s); ok {
			v.Since = c.LastTransitionTime.Time
			return v, true
		}
	}
	message := "its job failed: " + words(c.Reason, c.Message)
	if len(s.Seen.Pods) == 0 {
		message += "; its pod is gone"
	}
	return failure(event.ClassInfra, event.JobDisappeared, c.LastTransitionTime.Time, "%s", message), true
}

// cutOff: a pod was told to go because its node is lost, and the node does not
// say that it went.
func cutOff(s Sight) (Verdict, bool) {
	for _, p := range s.Seen.Pods {
		if p.DeletionTimestamp == nil || !alive(p) {
			continue
		}
		if v, ok := disruption(p); ok && s.Now.After(p.DeletionTimestamp.Add(s.Grace)) {
			return v, true
		}
	}
	return Verdict{}, false
}

// deleted: somebody deletes the job, and it is not canceled.
func deleted(s Sight) (Verdict, bool) {
	j := s.Seen.Job
	if j != nil && j.DeletionTimestamp == nil {
		return Verdict{}, false
	}
	v := Verdict{Phase: phase(s), Reason: event.JobDeleted, Message: "somebody deletes its job"}
	if j != nil {
		v.Since = j.DeletionTimestamp.Time
	}
	return v, true
}

// suspended: a queue system of the cluster's has not let the job begin.
func suspended(s Sight) (Verdict, bool) {
	j := s.Seen.Job
	if j.Spec.Suspend == nil || !*j.Spec.Suspend || len(s.Seen.Pods) > 0 {
		return Verdict{}, false
	}
	since := j.CreationTimestamp.Time
	if c, ok := condition(j, batchv1.JobSuspended); ok {
		since = c.LastTransitionTime.Time
	}
	return waits(s, since, event.ClassInfra, event.Unschedulable, "waits in the cluster's own queue, which has not let it begin"), true
}

// withoutPod: a job of the run has no pod yet, or is refused one.
func withoutPod(s Sight) (Verdict, bool) {
	e, refused := refusedPod(s)
	if len(s.Seen.Pods) > 0 && !refused {
		return Verdict{}, false
	}
	since := s.Seen.Job.CreationTimestamp.Time
	if refused {
		if forbidden(e.Message) {
			return failure(event.ClassUser, event.LaunchRefused, since, "the cluster refuses its pod: %s", e.Message), true
		}
		return waits(s, since, event.ClassUser, event.LaunchRefused, "the cluster refuses its pod: "+e.Message), true
	}
	return waits(s, since, event.ClassInfra, event.PendingTooLong, "waits for its pod"), true
}

// refusedPod returns what was heard last of a job of the run, none of whose pods
// is there, because the cluster refuses them.
func refusedPod(s Sight) (corev1.Event, bool) {
	for _, e := range slices.Backward(s.Seen.Events) {
		has := func(p corev1.Pod) bool {
			return e.InvolvedObject.Name == "" || p.Labels[batchv1.JobNameLabel] == e.InvolvedObject.Name || p.Labels["job-name"] == e.InvolvedObject.Name
		}
		if e.Reason == "FailedCreate" && (len(s.Seen.Pods) == 0 || e.InvolvedObject.Kind == "Job" && !slices.ContainsFunc(s.Seen.Pods, has)) {
			return e, true
		}
	}
	return corev1.Event{}, false
}

// unschedulable: no node takes a pod.
func unschedulable(s Sight) (Verdict, bool) {
	var without []corev1.Pod
	for _, p := range s.Seen.Pods {
		if c, ok := podCondition(p, corev1.PodScheduled); ok && c.Status != corev1.ConditionTrue {
			without = append(without, p)
		}
	}
	if len(without) == 0 {
		return Verdict{}, false
	}
	p := without[0]
	c, _ := podCondition(p, corev1.PodScheduled)
	pods, class, can := "its pod", event.ClassInfra, "can take"
	if len(s.Seen.Pods) > 1 {
		pods = fmt.Sprintf("%d of its %d pods", len(without), len(s.Seen.Pods))
	}
	switch {
	case unplaceable(c.Message):
		class = event.ClassUser
	case tooLarge(c.Message):
		class, can = event.ClassUser, "is large enough for"
	}
	began := since(c.LastTransitionTime, p)
	if e, adding := scaling(about(s.Seen.Events, p)); e.Reason != "" {
		if at := when(e); at.After(began) {
			began = at
		}
		if adding {
			v := waits(s, began, class, event.Unschedulable, fmt.Sprintf("a node is being added for %s: %s", pods, e.Message))
			if v.Phase != event.PhaseFinished {
				v.Reason = event.NodeScaling
			}
			return v, true
		}
	}
	return waits(s, began, class, event.Unschedulable, fmt.Sprintf("no node %s %s: %s", can, pods, words(c.Reason, c.Message))), true
}

// scaling returns the last time that an autoscaler said that it adds a node for
// a pod, and whether it has not taken that back.
func scaling(events []corev1.Event) (e corev1.Event, adding bool) {
	adding = true
	for _, e := range slices.Backward(events) {
		switch e.Reason {
		case "TriggeredScaleUp", "Nominated":
			return e, adding
		case "NotTriggerScaleUp", "FailedScaleUp":
			adding = false
		}
	}
	return corev1.Event{}, false
}

// when returns when something was said last.
func when(e corev1.Event) time.Time {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}

// containerWaits: a container cannot begin, and the benchmark has not.
func containerWaits(s Sight) (Verdict, bool) {
	if phase(s) == event.PhaseRunning {
		return Verdict{}, false
	}
	for _, p := range s.Seen.Pods {
		for _, c := range statuses(p) {
			if v, ok := stuck(s, p, c); ok {
				return v, true
			}
		}
	}
	return Verdict{}, false
}

// stuck is the verdict on a container that cannot begin. What is wrong with the
// benchmark's own is its user's, what is wrong with ours is not.
func stuck(s Sight, p corev1.Pod, c corev1.ContainerStatus) (Verdict, bool) {
	w := c.State.Waiting
	if w == nil {
		return Verdict{}, false
	}
	reason, hopeless := waitingReason(w.Reason)
	if reason == "" {
		return Verdict{}, false
	}
	class := event.ClassUser
	if c.Name != cluster.ContainerBenchmark {
		class = event.ClassPlatform
	}
	message := fmt.Sprintf("container %s cannot be started: %s", c.Name, words(w.Reason, w.Message))
	if hopeless {
		return failure(class, reason, scheduled(p), "%s", message), true
	}
	return waits(s, scheduled(p), class, reason, message), true
}

// volumeFails: a volume cannot be mounted, for all that was heard lately. What is
// to be mounted may be made a moment after the pod.
func volumeFails(s Sight) (Verdict, bool) {
	for _, p := range s.Seen.Pods {
		if !slices.ContainsFunc(statuses(p), creating) || slices.ContainsFunc(statuses(p), begun) {
			continue
		}
		for _, reason := range []string{"FailedMount", "FailedAttachVolume"} {
			if e, ok := last(about(s.Seen.Events, p), reason); ok {
				return lasting(s, waits(s, scheduled(p), event.ClassInfra, event.VolumeError, "a volume cannot be mounted: "+e.Message), 8*hush), true
			}
		}
	}
	return Verdict{}, false
}

// hush is how long a state must last to be worth a word, where it is on the way
// to another.
const hush = 250 * time.Millisecond

// preparing: the pod is there, and its benchmark has not begun.
func preparing(s Sight) (Verdict, bool) {
	if phase(s) == event.PhaseRunning {
		return Verdict{}, false
	}
	v := Verdict{Phase: event.PhasePending, Message: preparation(s.Seen.Pods), Since: scheduled(s.Seen.Pods[0])}
	for _, p := range s.Seen.Pods {
		if e, ok := pulling(about(s.Seen.Events, p)); ok && when(e).After(v.Since) && !slices.ContainsFunc(p.Status.ContainerStatuses, begun) {
			v.Message, v.Since = strings.TrimSpace(where(p)+": "+e.Message), when(e)
		}
		if c, ok := container(p, cluster.ContainerPull); ok && c.State.Running != nil {
			v.Message, v.Since = "its data are brought to the machine", c.State.Running.StartedAt.Time
		}
		if c, ok := container(p, cluster.ContainerWait); ok && c.State.Running != nil {
			v.Message, v.Since = "waits until all others of its pods are ready", c.State.Running.StartedAt.Time
		}
	}
	return lasting(s, v, hush), true
}

// preparation says where the pods were placed, as far as they are.
func preparation(pods []corev1.Pod) string {
	nodes := map[string]bool{}
	for _, p := range pods {
		if p.Spec.NodeName != "" {
			nodes[p.Spec.NodeName] = true
		}
	}
	names := slices.Sorted(maps.Keys(nodes))
	switch {
	case len(names) == 0:
		return "its pod is being prepared"
	case len(pods) == 1:
		return "its pod is scheduled on " + names[0] + ", and is being prepared"
	case len(names) > maxNames:
		names = append(names[:maxNames], fmt.Sprintf("%d others", len(nodes)-maxNames))
	}
	return fmt.Sprintf("its %d pods are scheduled on %s, and are being prepared", len(pods), strings.Join(names, ", "))
}

// where names a pod's node, and what the pod is to its run where it has others.
func where(p corev1.Pod) string {
	if name := who(p); name != cluster.ContainerBenchmark {
		return "the " + name
	}
	return p.Spec.NodeName
}

// pulling returns what was said last of the images of a pod. One that was there
// already is not worth a word.
func pulling(events []corev1.Event) (corev1.Event, bool) {
	for _, e := range slices.Backward(events) {
		switch {
		case e.Reason == "Pulled" && strings.Contains(e.Message, "already present"):
		case e.Reason == "Pulling", e.Reason == "Pulled":
			return e, true
		}
	}
	return corev1.Event{}, false
}

// lasting returns v once it has lasted for d, and until then nothing to say. A
// cluster whose clock is ahead is believed at once.
func lasting(s Sight, v Verdict, d time.Duration) Verdict {
	if until := v.Since.Add(d); s.Now.Before(until) && !s.Now.Before(v.Since) {
		return Verdict{Again: until}
	}
	return v
}

// running: the benchmark runs, or has ended and is being cleared up after.
func running(s Sight) (Verdict, bool) {
	for _, p := range main(s).Seen.Pods {
		c, ok := container(p, cluster.ContainerBenchmark)
		if !ok {
			continue
		}
		if t := c.State.Terminated; t != nil {
			message := fmt.Sprintf("the benchmark has ended with code %d; the last of its output is collected", t.ExitCode)
			return lasting(s, Verdict{Phase: event.PhaseRunning, Message: message, Since: t.FinishedAt.Time}, 4*hush), true
		}
		if r := c.State.Running; r != nil {
			message := "the benchmark runs"
			if cluster.Unwrapped(p) {
				message += ", by its image's own entrypoint: its output is read from the container's log, where what the node throws away is missing"
			}
			return Verdict{Phase: event.PhaseRunning, Message: message, Since: r.StartedAt.Time}, true
		}
	}
	return Verdict{}, false
}

// waits is the verdict for what may never come: the run waits until its time is
// up, then it has failed.
func waits(s Sight, since time.Time, class event.Class, reason event.Reason, message string) Verdict {
	until := since.Add(s.PendingDeadline)
	if !s.Now.Before(until) {
		return failure(class, reason, until, "%s; it waited for %s, and may wait no longer", message, s.PendingDeadline)
	}
	v := Verdict{Phase: phase(s), Reason: reason, Message: message, Since: since, Again: until}
	if reason == event.PendingTooLong {
		v.Reason = "" // it is not late yet
	}
	return v
}

// phase is pending until a benchmark has begun, and running from then on.
func phase(s Sight) event.Phase {
	for _, p := range main(s).Seen.Pods {
		if _, ok := started(p); ok {
			return event.PhaseRunning
		}
	}
	return event.PhasePending
}

func failure(class event.Class, reason event.Reason, since time.Time, format string, args ...any) Verdict {
	return Verdict{Phase: event.PhaseFinished, Outcome: event.Failed, Class: class, Reason: reason, Message: fmt.Sprintf(format, args...), Since: since}
}

// condition returns a condition of a job that is true.
func condition(j *batchv1.Job, t batchv1.JobConditionType) (batchv1.JobCondition, bool) {
	if j == nil {
		return batchv1.JobCondition{}, false
	}
	for _, c := range j.Status.Conditions {
		if c.Type == t && c.Status == corev1.ConditionTrue {
			return c, true
		}
	}
	return batchv1.JobCondition{}, false
}

func podCondition(p corev1.Pod, t corev1.PodConditionType) (corev1.PodCondition, bool) {
	for _, c := range p.Status.Conditions {
		if c.Type == t {
			return c, true
		}
	}
	return corev1.PodCondition{}, false
}

// statuses returns the states of a pod's containers, in the order in which they
// begin.
func statuses(p corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
}

func container(p corev1.Pod, name string) (corev1.ContainerStatus, bool) {
	for _, c := range statuses(p) {
		if c.Name == name {
			return c, true
		}
	}
	return corev1.ContainerStatus{}, false
}

// started returns when a pod's benchmark began.
func started(p corev1.Pod) (metav1.Time, bool) {
	c, ok := container(p, cluster.ContainerBenchmark)
	switch {
	case ok && c.State.Running != nil:
		return c.State.Running.StartedAt, true
	case ok && c.State.Terminated != nil && !c.State.Terminated.StartedAt.IsZero():
		return c.State.Terminated.StartedAt, true
	}
	return metav1.Time{}, false
}

// begun reports whether a container runs, or did.
func begun(c corev1.ContainerStatus) bool {
	return c.State.Running != nil || c.State.Terminated != nil || c.RestartCount > 0
}

func creating(c corev1.ContainerStatus) bool {
	return c.State.Waiting != nil && (c.State.Waiting.Reason == "ContainerCreating" || c.State.Waiting.Reason == "PodInitializing")
}

func alive(p corev1.Pod) bool {
	return p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// scheduled returns when a pod was given its node.
func scheduled(p corev1.Pod) time.Time {
	if c, ok := podCondition(p, corev1.PodScheduled); ok && c.Status == corev1.ConditionTrue {
		return since(c.LastTransitionTime, p)
	}
	return p.CreationTimestamp.Time
}

func since(t metav1.Time, p corev1.Pod) time.Time {
	if t.IsZero() {
		return p.CreationTimestamp.Time
	}
	return t.Time
}

// last returns the latest event of a reason.
func last(events []corev1.Event, reason string) (corev1.Event, bool) {
	for _, e := range slices.Backward(events) {
		if e.Reason == reason {
			return e, true
		}
	}
	return corev1.Event{}, false
}

// about returns the events about a pod.
func about(events []corev1.Event, p corev1.Pod) []corev1.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e corev1.Event) bool { return e.InvolvedObject.Name != p.Name })
}

// words joins a reason and a message of the cluster's, either of which may be
// missing.
func words(reason, message string) string {
	switch {
	case message == "":
		return reason
	case reason == "":
		return message
	}
	return reason + ": " + message
}
