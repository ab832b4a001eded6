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
	"github.com/benchmark-ai/bai/services/watcher/verdict/objects"
	"github.com/benchmark-ai/bai/services/watcher/verdict/scheduling"
)

// NodeWait is the wait of an attempt for other runs of this platform, which are on the nodes that its pods could use. The attempt's
// pending deadline does not run in this time. It is stored: nothing in the cluster shows which pods were on a node before.
type NodeWait struct {
	Since time.Time     `json:"since,omitzero"` // since when it waits; zero while it does not
	Ended time.Duration `json:"ended,omitzero"` // how long it waited in all before that
	// the last time at which it was found not to wait, give or take nodeWaitInterval; zero if never
	Free time.Time `json:"free,omitzero"`
}

// nodeWaitInterval is how often the time at which an attempt does not wait is stored.
const nodeWaitInterval = time.Minute

// Next returns the wait at a time at which the attempt waits for other runs, or does not; it lacks room since began. The time before a
// wait in which nobody looked counts as part of the wait.
func (t NodeWait) Next(waits bool, began, now time.Time) NodeWait {
	switch {
	case waits && t.Since.IsZero():
		t.Since = now.UTC()
		if from := later(t.Free, began); from.Before(now) {
			t.Since = from.UTC()
		}
	case !waits && !t.Since.IsZero():
		return NodeWait{Ended: t.total(now), Free: now.UTC()}
	case !waits && now.Sub(t.Free) >= nodeWaitInterval:
		t.Free = now.UTC()
	}
	return t
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// total returns how long the attempt has waited.
func (t NodeWait) total(now time.Time) time.Duration {
	if t.Since.IsZero() {
		return t.Ended
	}
	return t.Ended + max(0, now.Sub(t.Since))
}

// nodeWaitRecheck is how soon an attempt that lacks room is looked at again: a change of other runs is no change of its own.
const nodeWaitRecheck = 5 * time.Second

// NeedsRoom reports whether an attempt that is not over lacks a node for a pod, or is refused one by a quota.
func NeedsRoom(s Observation) bool {
	if s.Canceled || s.Seen.Job == nil {
		return false
	}
	r, refused := refusedPods(s)
	return len(withoutNode(s)) > 0 || refused && scheduling.OverQuota(r.words)
}

// WaitsForOthers reports whether an attempt that needs room waits for other runs: each pod without a node could use a node with a pod of
// another run.
func WaitsForOthers(s Observation) bool {
	if r, refused := refusedPods(s); refused && scheduling.OverQuota(r.words) {
		return len(withNode(othersOf(s))) > 0
	}
	pods := withoutNode(s)
	_, stuck := firstStuck(s, pods)
	return len(pods) > 0 && !stuck
}

// LacksRoomSince returns since when an attempt lacks room for a pod.
func LacksRoomSince(s Observation) time.Time {
	since := s.Seen.Job.CreationTimestamp.Time
	for _, p := range withoutNode(s) {
		c, _ := objects.Condition(p, corev1.PodScheduled)
		since = later(since, objects.TimeOrCreation(c.LastTransitionTime, p))
	}
	return since
}

// withoutNode returns the pods for which the scheduler found no node.
func withoutNode(s Observation) []corev1.Pod {
	var without []corev1.Pod
	for _, p := range s.Seen.Pods {
		if c, ok := objects.Condition(p, corev1.PodScheduled); ok && c.Status != corev1.ConditionTrue {
			without = append(without, p)
		}
	}
	return without
}

// firstStuck returns the first of the pods that would get no node if all other runs ended. The pods of one job are alike.
func firstStuck(s Observation, pods []corev1.Pod) (corev1.Pod, bool) {
	seen := make(map[string]bool)
	for _, p := range pods {
		c, _ := objects.Condition(p, corev1.PodScheduled)
		job, hopeless := p.Labels[batchv1.JobNameLabel], scheduling.Unplaceable(c.Message) || scheduling.TooLarge(c.Message)
		if _, tooFew := scheduling.LackingNodes(c.Message, p, len(pods), len(s.Seen.Pods)); hopeless || tooFew {
			return p, true
		}
		if !seen[job] && len(occupants(s, p)) == 0 {
			return p, true
		}
		seen[job] = true
	}
	return corev1.Pod{}, false
}

// occupants returns the pods of other runs on the nodes that a pod could use. Of two runs that hold nodes and lack others, the one that was
// submitted later does not wait for the other, so that its deadline ends a wait of each for the other.
func occupants(s Observation, p corev1.Pod) []corev1.Pod {
	lacking := lackingRuns(s)
	usable, needs := make(map[string]bool, len(s.Occupancy.Nodes)), cluster.PodRequests(p.Spec)
	for i := range s.Occupancy.Nodes {
		n := &s.Occupancy.Nodes[i]
		usable[n.Name] = s.Occupancy.OneMachine || mayUse(p.Spec, needs, n)
	}
	return slices.DeleteFunc(slices.Clone(s.Occupancy.Pods), func(other corev1.Pod) bool {
		if run := other.Labels[cluster.LabelRun]; ofRun(s, other) || other.Spec.NodeName == "" || lacking[run] &&
			run < s.Seen.Job.Labels[cluster.LabelRun] {
			return true
		}
		if s.Occupancy.UnknownReason != "" {
			return contradict(p.Spec.NodeSelector, other.Spec.NodeSelector)
		}
		return !usable[other.Spec.NodeName]
	})
}

// lackingRuns returns the other runs with a pod without a node.
func lackingRuns(s Observation) map[string]bool {
	all := make(map[string]bool)
	for _, p := range othersOf(s) {
		if p.Spec.NodeName == "" {
			all[p.Labels[cluster.LabelRun]] = true
		}
	}
	return all
}

// othersOf returns the pods of other runs.
func othersOf(s Observation) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(s.Occupancy.Pods), func(p corev1.Pod) bool { return ofRun(s, p) })
}

// withNode returns the pods that have a node.
func withNode(pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return p.Spec.NodeName == "" })
}

// ofRun reports whether a pod is of the run of the attempt.
func ofRun(s Observation, p corev1.Pod) bool {
	return p.Labels[cluster.LabelRun] == s.Seen.Job.Labels[cluster.LabelRun]
}

// contradict reports whether no node has the labels of both selectors.
func contradict(a, b map[string]string) bool {
	for key, value := range a {
		if other, ok := b[key]; ok && other != value {
			return true
		}
	}
	return false
}

// mayUse reports whether a node would take a pod with such requests if no other pod were there.
func mayUse(pod corev1.PodSpec, needs corev1.ResourceList, n *corev1.Node) bool {
	return cluster.TakesPods(n) && cluster.Selects(pod, n) && cluster.Tolerates(pod, n) && len(cluster.Lacking(needs, n)) == 0
}

// nodeWaitVerdict is the verdict on an attempt that waits for other runs: it is queued, however long that takes. A run whose benchmark has
// begun stays running.
func nodeWaitVerdict(s Observation, others []corev1.Pod, verb string) Verdict {
	runs, nodes := map[string]bool{}, map[string]bool{}
	for _, p := range others {
		runs[p.Labels[cluster.LabelRun]], nodes[p.Spec.NodeName] = true, true
	}
	names := slices.Sorted(maps.Keys(nodes))
	if len(names) > maxNames {
		names = append(names[:maxNames], fmt.Sprintf("%d others", len(nodes)-maxNames))
	}
	count, end := "1 other run", "ends"
	if len(runs) > 1 {
		count, end = fmt.Sprintf("%d other runs", len(runs)), "end"
	}
	v := Verdict{
		Phase: event.PhaseQueued, Reason: event.NodesInUse, Since: s.NodeWait.Since, RecheckAt: s.Now.Add(nodeWaitRecheck),
		Message: fmt.Sprintf("%s until %s on %s %s", verb, count, strings.Join(names, ", "), end),
	}
	if phase(s) == event.PhaseRunning {
		v.Phase = event.PhaseRunning
	}
	return v
}
