package transpile

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// nodeSelector is what a node must have.
func (b builder) nodeSelector() map[string]string {
	h, sel := b.role.hardware, map[string]string{}
	maps.Copy(sel, h.NodeSelector)
	if h.InstanceType != "" {
		sel[corev1.LabelInstanceTypeStable] = h.InstanceType
	}
	if b.zone != "" {
		sel[corev1.LabelTopologyZone] = b.zone
	}
	if len(sel) == 0 {
		return nil
	}
	return sel
}

func tolerations(ts []descriptors.Toleration) []corev1.Toleration {
	var out []corev1.Toleration
	for _, t := range ts {
		one := corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOperator(t.Operator), Value: t.Value, Effect: corev1.TaintEffect(t.Effect)}
		if t.Key == "" {
			one.Operator = corev1.TolerationOpExists
		}
		if t.Seconds != nil {
			s := int64(*t.Seconds)
			one.TolerationSeconds = &s
		}
		out = append(out, one)
	}
	return out
}

// affinity keeps other runs' pods, of whatever namespace, from the node of this
// run's, as settings say.
func (b builder) affinity() *corev1.Affinity {
	others := corev1.PodAffinityTerm{
		TopologyKey:       corev1.LabelHostname,
		NamespaceSelector: &metav1.LabelSelector{},
		LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: cluster.LabelRun, Operator: metav1.LabelSelectorOpExists},
			{Key: cluster.LabelRun, Operator: metav1.LabelSelectorOpNotIn, Values: []string{b.in.Run.Run}},
		}},
	}
	switch b.settings.Placement {
	case Exclusive:
		return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{others}}}
	case Anywhere:
		return nil
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: others}},
	}}
}

// topologySpread has the replicas of a role share the nodes evenly where they can.
func (b builder) topologySpread() []corev1.TopologySpreadConstraint {
	if b.role.replicas < 2 {
		return nil
	}
	return []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchLabels: b.selector()},
	}}
}

// Labels and annotations by which queue systems know what is theirs.
const (
	kueueQueue    = "kueue.x-k8s.io/queue-name"
	volcano       = "volcano"
	volcanoQueue  = "scheduling.volcano.sh/queue-name"
	volcanoGroup  = "scheduling.k8s.io/group-name"
	volcanoObject = "scheduling.volcano.sh/v1beta1"
)

// setKueueQueue has Kueue, where settings name a queue of it, say when a Job may begin.
func (b builder) setKueueQueue(j *batchv1.Job) {
	if b.settings.Queue == "" || b.settings.Scheduler == volcano {
		return
	}
	yes := true
	j.Labels[kueueQueue], j.Spec.Suspend = b.settings.Queue, &yes
}

// annotatePodGroup notes in a pod's annotations to which gang of volcano it belongs.
func (b builder) annotatePodGroup(annotations map[string]string) {
	if b.settings.Scheduler != volcano {
		return
	}
	annotations[volcanoGroup] = jobName(b.in.Run.Run, b.in.Run.Attempt)
	if b.settings.Queue != "" {
		annotations[volcanoQueue] = b.settings.Queue
	}
}

// podGroup is the gang of a run, for volcano; nil for others.
func podGroup(builders []builder, pods int) *unstructured.Unstructured {
	b := builders[len(builders)-1]
	if b.settings.Scheduler != volcano {
		return nil
	}
	spec := map[string]any{"minMember": int64(pods)}
	if b.settings.Queue != "" {
		spec["queue"] = b.settings.Queue
	}
	if b.settings.PriorityClass != "" {
		spec["priorityClassName"] = b.settings.PriorityClass
	}
	g := &unstructured.Unstructured{Object: map[string]any{"apiVersion": volcanoObject, "kind": "PodGroup", "spec": spec}}
	meta := b.meta()
	g.SetName(jobName(b.in.Run.Run, b.in.Run.Attempt))
	g.SetNamespace(meta.Namespace)
	g.SetLabels(meta.Labels)
	g.SetAnnotations(meta.Annotations)
	return g
}
