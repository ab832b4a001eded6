// Package selection says which pods that others have made are of an object of a run: those that the object selects by a label with its own
// name in it.
package selection

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

// Others selects the pods that have no labels of a run.
const Others = "!" + cluster.LabelRun

// Of returns the selector of the pods of an object that have no labels of its run, and
// the values of a label, one of which each of these pods has. It returns no values for an object
// that selects none: a selector that does not name the attempt selects none either.
func Of(o metav1.Object) (manifest.Selector, []string) {
	run, attempt := o.GetLabels()[cluster.LabelRun], o.GetLabels()[cluster.LabelAttempt]
	text := o.GetAnnotations()[cluster.AnnotationPodSelector]
	if run == "" || attempt == "" || text == "" {
		return manifest.Selector{}, nil
	}
	s, err := manifest.ParseSelector(text)
	if err != nil {
		return manifest.Selector{}, nil
	}
	return s, s.Named(objectPrefix + run + "-" + attempt)
}

// Attach returns those of some pods that are of an object, with the labels that other pods of its
// run have. A pod with the labels of a run is of that run alone, and a pod that is older than the
// object is of none.
func Attach(j *batchv1.Job, pods []*corev1.Pod) []*corev1.Pod {
	s, names := Of(j)
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

// Names returns the values of the labels of a pod in which names of objects may be. A pod without any is of no object.
func Names(p *corev1.Pod) []string {
	var all []string
	for _, value := range p.Labels {
		if strings.Contains(value, objectPrefix) {
			all = append(all, value)
		}
	}
	return all
}
