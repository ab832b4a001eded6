package verdict

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/watcher/verdict/objects"
)

// machines returns the nodes that an attempt used, by name: each from the binding of its first pod to the end of its last one. A pod that
// has not ended ends with the attempt. It returns nil if no pod of the attempt was ever seen.
func machines(s Observation, end time.Time) []event.MachineUse {
	all := pods(s)
	if len(all) == 0 {
		return nil
	}
	if end.IsZero() {
		end = s.Now
	}
	byNode := make(map[string]int, len(all))
	uses := []event.MachineUse{} // known to be none, if no pod was bound
	for _, p := range all {
		if p.Spec.NodeName == "" {
			continue
		}
		use := machineOf(s, p, end)
		i, again := byNode[use.Node]
		if !again {
			byNode[use.Node] = len(uses)
			uses = append(uses, use)
			continue
		}
		before := &uses[i]
		if use.From.Before(before.From) {
			before.From = use.From
		}
		if use.Until.After(before.Until) {
			before.Until = use.Until
		}
		before.InstanceType, before.PricePerHour = cmp.Or(before.InstanceType, use.InstanceType),
			cmp.Or(before.PricePerHour, use.PricePerHour)
	}
	slices.SortFunc(uses, func(a, b event.MachineUse) int { return strings.Compare(a.Node, b.Node) })
	return uses
}

// machineOf returns the use of its node by one pod.
func machineOf(s Observation, p corev1.Pod, end time.Time) event.MachineUse {
	use := event.MachineUse{
		Node: p.Spec.NodeName, InstanceType: instanceType(s, p), PricePerHour: p.Annotations[cluster.AnnotationPrice],
		From: objects.Scheduled(p).UTC(), Until: podEnd(p, end).UTC(),
	}
	if use.Until.Before(use.From) {
		use.Until = use.From
	}
	return use
}

// instanceType returns the instance type of a pod's node, else the type that the pod asked for.
func instanceType(s Observation, p corev1.Pod) string {
	for i := range s.Occupancy.Nodes {
		n := &s.Occupancy.Nodes[i]
		if n.Name == p.Spec.NodeName {
			if label := cmp.Or(n.Labels[corev1.LabelInstanceTypeStable], n.Labels[corev1.LabelInstanceType]); label != "" {
				return label
			}
		}
	}
	return p.Spec.NodeSelector[corev1.LabelInstanceTypeStable]
}

// podEnd returns when a pod ended: when its last container did. A pod that still runs, or whose end is not known, ends with the attempt.
func podEnd(p corev1.Pod, end time.Time) time.Time {
	if cluster.Alive(p) {
		return end
	}
	var last time.Time
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if t := c.State.Terminated; t != nil && t.FinishedAt.After(last) {
			last = t.FinishedAt.Time
		}
	}
	if last.IsZero() {
		return end
	}
	return last
}
