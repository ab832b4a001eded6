package transpile

import (
	"cmp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/plan/refusal"
	"github.com/benchmark-ai/bai/services/plan/transpile/placement"
)

// nodeSelector returns the labels that a node must have. The local cluster is one machine,
// and the settings fix none there.
func (b builder) nodeSelector() map[string]string {
	sel, err := b.settings.selector(b.role.Hardware, b.zone)
	if err != nil {
		return nil // buildersOf has refused it
	}
	return sel
}

func (s Settings) selector(h descriptors.Hardware, zone string) (map[string]string, error) {
	if s.OneMachine {
		s.NodeSelector = nil
	}
	sel, err := placement.NodeSelector(s.NodeSelector, h, zone)
	if err != nil {
		return nil, refusal.Descriptor("%s", err)
	}
	return sel, nil
}

// affinity returns which pods, of this run and of others, may be on the nodes of a pod, and which nodes are preferred.
func (b builder) affinity() *corev1.Affinity {
	h := b.in.Descriptor.Hardware
	a := placement.Affinity(b.in.Run.Run, b.role.OtherPods+1, h, cmp.Or(h.Placement, b.settings.Placement))
	if b.role.Hardware.AvoidControlPlane {
		a = placement.AvoidControlPlane(a, b.tolerations())
	}
	if b.settings.OneMachine {
		return a
	}
	return placement.PreferNodes(a, b.in.Run.Nodes)
}

// checkPlacement refuses a placement that the settings do not let descriptors name.
func (s Settings) checkPlacement(h descriptors.Hardware) error {
	if h.Placement == "" || len(s.Placements) == 0 || s.OneMachine || slices.Contains(s.Placements, h.Placement) {
		return nil
	}
	return refusal.Descriptor("hardware.placement is %q, and this platform's descriptors may name %s", h.Placement,
		strings.Join(s.Placements, ", "))
}

// tolerations returns the taints that a node may have.
func (b builder) tolerations() []corev1.Toleration {
	return placement.Tolerations(b.settings.Tolerations, b.role.Hardware.Tolerations)
}

// topologySpread spreads the replicas of a role evenly over the nodes, if possible.
func (b builder) topologySpread() []corev1.TopologySpreadConstraint {
	if b.role.Replicas < 2 {
		return nil
	}
	return []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchLabels: b.selector()},
	}}
}

// Labels and annotations of the queueing systems.
const (
	volcano       = "volcano"
	volcanoQueue  = "scheduling.volcano.sh/queue-name"
	volcanoGroup  = "scheduling.k8s.io/group-name"
	volcanoObject = "scheduling.volcano.sh/v1beta1"
)

// queue returns the queue of the run: that of the descriptor, else that of the settings. One machine has none.
func (b builder) queue() string {
	if b.settings.OneMachine {
		return b.settings.Queue
	}
	return cmp.Or(b.in.Descriptor.Hardware.Queue, b.settings.Queue)
}

// priorityClass returns the priority class of the pods, as queue does.
func (b builder) priorityClass() string {
	if b.settings.OneMachine {
		return b.settings.PriorityClass
	}
	return cmp.Or(b.in.Descriptor.Hardware.Priority, b.settings.PriorityClass)
}

// setKueueQueue suspends a Job until Kueue admits it, if the run has a queue.
func (b builder) setKueueQueue(j *batchv1.Job) {
	queue := b.queue()
	if queue == "" || b.settings.Scheduler == volcano {
		return
	}
	yes := true
	j.Labels[cluster.LabelKueueQueue], j.Spec.Suspend = queue, &yes
}

// annotatePodGroup adds the gang of the pod for volcano to its annotations.
func (b builder) annotatePodGroup(annotations map[string]string) {
	if b.settings.Scheduler != volcano {
		return
	}
	annotations[volcanoGroup] = jobName(b.in.Run.Run, b.in.Run.Attempt)
	if queue := b.queue(); queue != "" {
		annotations[volcanoQueue] = queue
	}
}

// podGroup returns the gang of a run for volcano, or nil with another scheduler.
func podGroup(builders []builder, pods int) *unstructured.Unstructured {
	b := builders[len(builders)-1]
	if b.settings.Scheduler != volcano {
		return nil
	}
	spec := map[string]any{"minMember": int64(pods)}
	if queue := b.queue(); queue != "" {
		spec["queue"] = queue
	}
	if class := b.priorityClass(); class != "" {
		spec["priorityClassName"] = class
	}
	g := &unstructured.Unstructured{Object: map[string]any{"apiVersion": volcanoObject, "kind": "PodGroup", "spec": spec}}
	meta := b.meta()
	g.SetName(jobName(b.in.Run.Run, b.in.Run.Attempt))
	g.SetNamespace(meta.Namespace)
	g.SetLabels(meta.Labels)
	g.SetAnnotations(meta.Annotations)
	return g
}
