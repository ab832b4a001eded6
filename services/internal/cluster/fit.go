package cluster

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TakesPods reports whether a node is ready and not cordoned.
func TakesPods(n *corev1.Node) bool {
	return !n.Spec.Unschedulable && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// Selects reports whether a node has the labels that a pod's node selector names.
func Selects(s corev1.PodSpec, n *corev1.Node) bool {
	for key, value := range s.NodeSelector {
		if n.Labels[key] != value {
			return false
		}
	}
	return true
}

// Tolerates reports whether a pod tolerates the taints of a node that keep pods off.
func Tolerates(s corev1.PodSpec, n *corev1.Node) bool {
	for _, taint := range n.Spec.Taints {
		if taint.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		if !slices.ContainsFunc(s.Tolerations, func(t corev1.Toleration) bool { return tolerationMatches(t, taint) }) {
			return false
		}
	}
	return true
}

func tolerationMatches(t corev1.Toleration, taint corev1.Taint) bool {
	switch {
	case t.Effect != "" && t.Effect != taint.Effect, t.Key != "" && t.Key != taint.Key:
		return false
	case t.Operator == corev1.TolerationOpExists:
		return true
	}
	return t.Key != "" && t.Value == taint.Value
}

// Lacking returns the resources of which a node has less than is needed, even if no pod is
// on it, in the order of their names.
func Lacking(needs corev1.ResourceList, n *corev1.Node) []corev1.ResourceName {
	var names []corev1.ResourceName
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		has := n.Status.Allocatable[name]
		if want := needs[name]; want.Cmp(has) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// PodRequests returns the resources that a node must have for a pod: the sum over its
// containers, or the request of an init container if that is larger. A limit without a
// request counts as a request.
func PodRequests(s corev1.PodSpec) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, c := range s.Containers {
		for name, q := range ContainerRequests(c) {
			total := sum[name]
			total.Add(q)
			sum[name] = total
		}
	}
	for _, c := range s.InitContainers {
		for name, q := range ContainerRequests(c) {
			if has := sum[name]; q.Cmp(has) > 0 {
				sum[name] = q
			}
		}
	}
	maps.DeleteFunc(sum, func(_ corev1.ResourceName, q resource.Quantity) bool { return q.IsZero() })
	return sum
}

// ContainerRequests returns the requests of a container, and its limits where it has no
// request.
func ContainerRequests(c corev1.Container) corev1.ResourceList {
	all := maps.Clone(c.Resources.Limits)
	if all == nil {
		all = corev1.ResourceList{}
	}
	maps.Copy(all, c.Resources.Requests)
	return all
}
