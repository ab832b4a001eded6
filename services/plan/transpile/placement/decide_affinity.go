package placement

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// Placements of the pods of a run beside those of other runs; the empty one is Spread.
const (
	Exclusive = "exclusive" // never on a node with a pod of another run
	Spread    = "spread"    // on other nodes if possible
	Pack      = "pack"      // on nodes with pods of other runs if possible
	Anywhere  = "anywhere"
)

// All returns the placements.
func All() []string { return []string{Exclusive, Spread, Pack, Anywhere} }

// Affinity returns which pods may be on the nodes of a pod: those of other runs by the
// placement, and those of its own run, which has so many pods, by the run's hardware. It is
// nil if all may.
func Affinity(run string, pods int, h descriptors.Hardware, placement string) *corev1.Affinity {
	var a corev1.Affinity
	switch placement {
	case Exclusive:
		a.PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{otherRuns(run)},
		}
	case Pack:
		a.PodAffinity = &corev1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
				Weight:          100,
				PodAffinityTerm: otherRuns(run),
			}},
		}
	case Anywhere:
	default:
		a.PodAntiAffinity = &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
				Weight:          100,
				PodAffinityTerm: otherRuns(run),
			}},
		}
	}
	if pods > 1 {
		addOwnPods(&a, run, h)
	}
	if a == (corev1.Affinity{}) {
		return nil
	}
	return &a
}

// otherRuns is the term for the pods of other runs, in any namespace.
func otherRuns(run string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{
		TopologyKey:       corev1.LabelHostname,
		NamespaceSelector: &metav1.LabelSelector{},
		LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: cluster.LabelRun, Operator: metav1.LabelSelectorOpExists},
			{Key: cluster.LabelRun, Operator: metav1.LabelSelectorOpNotIn, Values: []string{run}},
		}},
	}
}

// addOwnPods keeps the pods of a run apart or together. A scheduler lets the first pod of a
// run onto any node with the label, because the pod itself is one of those that its term
// means.
func addOwnPods(a *corev1.Affinity, run string, h descriptors.Hardware) {
	own := func(topology string) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{
			TopologyKey:   topology,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{cluster.LabelRun: run}},
		}
	}
	if h.Apart != "" {
		if a.PodAntiAffinity == nil {
			a.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		required := &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*required = append(*required, own(corev1.LabelHostname))
	}
	if topology := h.Topology(); topology != "" {
		if a.PodAffinity == nil {
			a.PodAffinity = &corev1.PodAffinity{}
		}
		a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{own(topology)}
	}
}

// labelControlPlane is the label, and the key of the taint, of the nodes of a control plane.
const labelControlPlane = "node-role.kubernetes.io/control-plane"

// AvoidControlPlane returns an affinity, which may be nil, that prefers nodes without the
// cluster's control plane, unless tolerations let the pod onto them.
func AvoidControlPlane(a *corev1.Affinity, tolerations []corev1.Toleration) *corev1.Affinity {
	for _, t := range tolerations {
		if (t.Key == "" || t.Key == labelControlPlane) && (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule) {
			return a
		}
	}
	if a == nil {
		a = &corev1.Affinity{}
	}
	a.NodeAffinity = &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
		Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: labelControlPlane, Operator: corev1.NodeSelectorOpDoesNotExist},
		}},
	}}}
	return a
}

// nodeName is the field of a node that a term about its name names. A term has one value.
const nodeName = "metadata.name"

// PreferNodes returns an affinity, which may be nil, that prefers the nodes on which a run is to be,
// and others than those on which it is not to be. P is nil for a run that may be anywhere.
func PreferNodes(a *corev1.Affinity, p *event.NodePreference) *corev1.Affinity {
	if p == nil {
		return a
	}
	var terms []corev1.PreferredSchedulingTerm
	for _, name := range p.On {
		terms = append(terms, preferred(corev1.NodeSelectorOpIn, name))
	}
	if len(p.NotOn) > 0 {
		terms = append(terms, preferred(corev1.NodeSelectorOpNotIn, p.NotOn...))
	}
	if len(terms) == 0 {
		return a
	}
	if a == nil {
		a = &corev1.Affinity{}
	}
	if a.NodeAffinity == nil {
		a.NodeAffinity = &corev1.NodeAffinity{}
	}
	is := &a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	*is = append(*is, terms...)
	return a
}

// preferred is a term for nodes to all of whose names an operator applies.
func preferred(op corev1.NodeSelectorOperator, names ...string) corev1.PreferredSchedulingTerm {
	t := corev1.PreferredSchedulingTerm{Weight: 100}
	for _, name := range names {
		t.Preference.MatchFields = append(t.Preference.MatchFields,
			corev1.NodeSelectorRequirement{Key: nodeName, Operator: op, Values: []string{name}})
	}
	return t
}
