package kube

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube/selection"
)

// defaultContainer of a pod names the container that kubectl takes where none is named.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// stripUnlabeled removes what nobody reads from a pod without the labels of a run, and gives its
// measured container the name that it has in every other pod: the default one of kubectl, or the
// first. Of a pod that no object can select only the name is left.
func stripUnlabeled(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	if len(selection.Names(p)) == 0 {
		var name metav1.ObjectMeta
		name.Name, name.Namespace, name.UID, name.ResourceVersion = p.Name, p.Namespace, p.UID, p.ResourceVersion
		return &corev1.Pod{ObjectMeta: name}, nil
	}
	p.ManagedFields = nil
	setMeasured(p)
	stripPodSpec(&p.Spec)
	return p, nil
}

// setMeasured has the annotation of a pod that is not the platform's name its measured container.
func setMeasured(p *corev1.Pod) {
	if p.Annotations[cluster.AnnotationContainer] != "" || len(p.Spec.Containers) == 0 {
		return
	}
	name := p.Spec.Containers[0].Name
	for _, c := range p.Spec.Containers {
		if c.Name == p.Annotations[defaultContainer] {
			name = c.Name
		}
	}
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[cluster.AnnotationContainer] = name
	nameMeasured(p)
}
