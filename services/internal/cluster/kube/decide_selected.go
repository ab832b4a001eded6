package kube

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/descriptors/manifest"
	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// objectPrefix begins the names of all objects of runs.
const objectPrefix = "bai-"

// defaultContainer of a pod names the container that kubectl takes where none is named.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// selectionOf returns the selector of the pods of an object that have no labels of its run, and
// the values of a label, one of which each of these pods has. It returns no values for an object
// that selects none: a selector that does not name the attempt selects none either.
func selectionOf(o metav1.Object) (manifest.Selector, []string) {
	at, ok := attemptOf(o)
	text := o.GetAnnotations()[cluster.AnnotationPodSelector]
	if !ok || text == "" {
		return manifest.Selector{}, nil
	}
	s, err := manifest.ParseSelector(text)
	if err != nil {
		return manifest.Selector{}, nil
	}
	return s, s.Named(objectPrefix + at.run + "-" + at.number)
}

// attach returns those of some pods that are of an object, with the labels that other pods of its
// run have. A pod with the labels of a run is of that run alone, and a pod that is older than the
// object is of none.
func attach(j *batchv1.Job, pods []*corev1.Pod) []*corev1.Pod {
	s, names := selectionOf(j)
	if len(names) == 0 {
		return nil
	}
	var all []*corev1.Pod
	for _, p := range pods {
		older := p.CreationTimestamp.Before(&j.CreationTimestamp)
		if p.Labels[cluster.LabelRun] != "" || p.Namespace != j.Namespace || !s.Matches(p.Labels) || older {
			continue
		}
		p = p.DeepCopy()
		delete(p.Labels, batchv1.JobNameLabel) // a Job of the operator may have the name of the object
		for _, label := range []string{cluster.LabelRun, cluster.LabelAttempt, cluster.LabelRole, cluster.LabelCopy} {
			p.Labels[label] = j.Labels[label]
		}
		all = append(all, p)
	}
	return all
}

// mayBeSelected returns the values of the labels of a pod in which names of objects may be.
func mayBeSelected(p *corev1.Pod) []string {
	var all []string
	for _, value := range p.Labels {
		if strings.Contains(value, objectPrefix) {
			all = append(all, value)
		}
	}
	return all
}

// stripUnlabeled removes what nobody reads from a pod without the labels of a run, and gives its
// measured container the name that it has in every other pod: the default one of kubectl, or the
// first. Of a pod that no object can select only the name is left.
func stripUnlabeled(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	if len(mayBeSelected(p)) == 0 {
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
