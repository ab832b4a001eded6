package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// affinity returns an affinity that holds where both do, and prefers what either does.
func affinity(own, ours *corev1.Affinity) *corev1.Affinity {
	switch {
	case own == nil:
		return ours
	case ours == nil:
		return own
	}
	apart := podAffinity((*corev1.PodAffinity)(own.PodAntiAffinity), (*corev1.PodAffinity)(ours.PodAntiAffinity)) // of equal form
	return &corev1.Affinity{
		NodeAffinity:    nodeAffinity(own.NodeAffinity, ours.NodeAffinity),
		PodAffinity:     podAffinity(own.PodAffinity, ours.PodAffinity),
		PodAntiAffinity: (*corev1.PodAntiAffinity)(apart),
	}
}

// podAffinity returns the terms of both: a pod is where all that are required hold.
func podAffinity(own, ours *corev1.PodAffinity) *corev1.PodAffinity {
	switch {
	case own == nil:
		return ours
	case ours == nil:
		return own
	}
	return &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: slices.Concat(
			own.RequiredDuringSchedulingIgnoredDuringExecution, ours.RequiredDuringSchedulingIgnoredDuringExecution),
		PreferredDuringSchedulingIgnoredDuringExecution: slices.Concat(
			own.PreferredDuringSchedulingIgnoredDuringExecution, ours.PreferredDuringSchedulingIgnoredDuringExecution),
	}
}

// nodeAffinity is podAffinity for nodes, which have to meet one required term of each.
func nodeAffinity(own, ours *corev1.NodeAffinity) *corev1.NodeAffinity {
	switch {
	case own == nil:
		return ours
	case ours == nil:
		return own
	}
	return &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: nodeSelector(
			own.RequiredDuringSchedulingIgnoredDuringExecution, ours.RequiredDuringSchedulingIgnoredDuringExecution),
		PreferredDuringSchedulingIgnoredDuringExecution: slices.Concat(
			own.PreferredDuringSchedulingIgnoredDuringExecution, ours.PreferredDuringSchedulingIgnoredDuringExecution),
	}
}

// nodeSelector returns a selector of the nodes that both select. A node meets a selector if it
// meets one of its terms, and a term if it meets all of its requirements, so that each term of the
// result has those of a pair. No node meets a term without requirements, and such a term stays.
func nodeSelector(own, ours *corev1.NodeSelector) *corev1.NodeSelector {
	switch {
	case own == nil:
		return ours
	case ours == nil:
		return own
	}
	both := &corev1.NodeSelector{}
	for _, a := range own.NodeSelectorTerms {
		if isEmpty(a) {
			both.NodeSelectorTerms = append(both.NodeSelectorTerms, a)
			continue
		}
		for _, b := range ours.NodeSelectorTerms {
			if isEmpty(b) {
				both.NodeSelectorTerms = append(both.NodeSelectorTerms, b)
				continue
			}
			both.NodeSelectorTerms = append(both.NodeSelectorTerms, corev1.NodeSelectorTerm{
				MatchExpressions: slices.Concat(a.MatchExpressions, b.MatchExpressions),
				MatchFields:      slices.Concat(a.MatchFields, b.MatchFields),
			})
		}
	}
	return both
}

func isEmpty(t corev1.NodeSelectorTerm) bool { return len(t.MatchExpressions)+len(t.MatchFields) == 0 }
