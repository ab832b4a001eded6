package inject

import (
	"cmp"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/manifest"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/plan/refusal"
)

// Input is an attempt of a run of strategy manifest, with what its objects have in common with
// those of other runs.
type Input struct {
	Descriptor *descriptors.Descriptor
	Kinds      map[string]Kind // that settings list
	AnyKind    bool            // nothing is known of the kinds: any is taken
	OneMachine bool            // the cluster has no controllers

	Attempt  string            // name of the object that ends the run
	Meta     metav1.ObjectMeta // of all objects
	PodMeta  metav1.ObjectMeta // of their pods
	Selects  map[string]string // labels that select the pods of the attempt
	Deadline *int64            // seconds; nil for none
	TTL      int64             // seconds that an object stays after its end
	Queue    string            // of Kueue; empty for none
	Command  []string          // beginning of the command of a measured container

	// Pod returns the platform's pod, whose only container is the measured one.
	Pod func(Pods) corev1.PodTemplateSpec
}

// Pods is a group of pods of an object, into which the parts of a pod of the platform go.
type Pods struct {
	Kind     manifest.Kind
	Group    map[string]any    // what the object says about the group
	Measured *corev1.Container // of the user's pods
	All      int               // number of pods of the run
}

// Objects returns the objects of the run, and the number of their pods as far as it is known.
// Those that end come last. The only error is *refusal.Error.
func (in Input) Objects() (objects []cluster.Object, pods int, err error) {
	all, main, err := in.documents()
	if err != nil {
		return nil, 0, err
	}
	if pods, err = in.countPods(all); err != nil {
		return nil, 0, err
	}
	var ending []cluster.Object
	for n := range in.Descriptor.Manifest.Copies {
		c := copyBuilder{Input: in, number: n, names: newObjectNames(in.Attempt, n, plain(all), main), pods: pods}
		for i, d := range all {
			o, err := c.object(d, i == main)
			if err != nil {
				return nil, 0, err
			}
			if d.ends {
				ending = append(ending, o)
			} else {
				objects = append(objects, o)
			}
		}
	}
	return append(objects, ending...), pods, nil
}

// copyBuilder makes the objects of one copy of a manifest.
type copyBuilder struct {
	Input

	number int
	names  objectNames
	pods   int // of all copies
}

// object returns an object of the manifest as it is created.
func (c copyBuilder) object(d document, main bool) (cluster.Object, error) { //nolint:ireturn // of any kind
	object, ok := c.names.Rename(d.Object).(map[string]any)
	if !ok {
		return nil, refusal.Descriptor("%s: line %d: is not an object", c.Descriptor.ObjectsKey(), d.Line)
	}
	delete(object, "status")
	o := &unstructured.Unstructured{Object: object}
	c.setMeta(o, d, main)
	if err := c.setPods(d, object); err != nil {
		return nil, err
	}
	if d.ends {
		if err := c.setEnd(d, o); err != nil {
			return nil, err
		}
	}
	return c.typed(d, o)
}

// setMeta sets name, namespace, labels and annotations.
func (c copyBuilder) setMeta(o *unstructured.Unstructured, d document, main bool) {
	meta := c.Meta
	o.SetName(c.names.Of(d.Document))
	o.SetGenerateName("")
	o.SetNamespace(meta.Namespace)
	o.SetLabels(over(o.GetLabels(), c.copyLabels(meta.Labels)))
	o.SetAnnotations(over(o.GetAnnotations(), meta.Annotations))
	if d.ends && (!main || c.number > 0) {
		o.SetLabels(over(o.GetLabels(), map[string]string{cluster.LabelEnd: cluster.EndAwaited}))
	}
	if d.Kind() == "Service" && d.APIVersion() == "v1" {
		if selector, ok, _ := unstructured.NestedStringMap(o.Object, "spec", "selector"); ok && len(selector) > 0 {
			selector = over(selector, c.copyLabels(c.Selects))
			_ = unstructured.SetNestedStringMap(o.Object, selector, "spec", "selector") // the table is there
		}
	}
}

func (c copyBuilder) copyLabels(labels map[string]string) map[string]string {
	return over(labels, map[string]string{cluster.LabelCopy: strconv.Itoa(c.number)})
}

// setEnd says how the object ends, when, and how long it stays.
func (c copyBuilder) setEnd(d document, o *unstructured.Unstructured) error {
	succeeded, failed := c.Descriptor.Manifest.Succeeded, c.Descriptor.Manifest.Failed
	if d.known {
		succeeded, failed = d.kind.Succeeded.String(), d.kind.Failed.String()
	}
	ends := map[string]string{cluster.AnnotationSucceeded: succeeded}
	if d.kind.Unlabeled() {
		key, value, err := c.podsOf(d, o.GetName())
		if err != nil {
			return err
		}
		ends[key] = value
	}
	if failed != "" {
		ends[cluster.AnnotationFailed] = failed
	}
	o.SetAnnotations(over(o.GetAnnotations(), ends))
	if deadline := c.Deadline; deadline != nil {
		if d.kind.Deadline == "" && len(d.kind.Templates) == 0 {
			return refusal.Descriptor("limits.deadline ends no %s: leave it out, or name another kind", cmp.Or(d.kind.Kind, d.Kind()))
		}
		if d.kind.Deadline != "" {
			manifest.Set(o.Object, d.kind.Deadline, *deadline, true)
		}
	}
	if d.kind.TTL != "" {
		manifest.Set(o.Object, d.kind.TTL, c.TTL, true)
	}
	return c.setQueue(d, o)
}

// podsOf returns the annotation that says which pods are those of an object with a name. They have
// no labels of the platform.
func (c copyBuilder) podsOf(d document, name string) (key, value string, err error) {
	var terms []string
	if d.kind.PodLabel != "" {
		terms = append(terms, d.kind.PodLabel+"="+name)
	}
	if text := c.Descriptor.Manifest.Pods; text != "" {
		s, err := manifest.ParseSelector(text)
		if err != nil || s.Named(manifest.ObjectsVariable) == nil {
			return "", "", refusal.Descriptor("manifest.pods: %q selects pods of other runs as well", text)
		}
		terms = append(terms, s.With(c.names.Base).String())
	}
	if len(terms) == 0 {
		return cluster.AnnotationUnseen, "true", nil
	}
	return cluster.AnnotationPodSelector, strings.Join(terms, ","), nil
}

// setQueue holds the object back until Kueue admits it, if the run has a queue.
func (c copyBuilder) setQueue(d document, o *unstructured.Unstructured) error {
	if c.Queue == "" {
		return nil
	}
	if d.kind.Suspend == "" {
		return refusal.Descriptor("runs wait in the queue %q of Kueue, and no %s waits there: name another kind", c.Queue, d.Kind())
	}
	o.SetLabels(over(o.GetLabels(), map[string]string{cluster.LabelKueueQueue: c.Queue}))
	manifest.Set(o.Object, d.kind.Suspend, true, true)
	return nil
}

// typed returns a Job, ConfigMap or Service in its own type, as for other runs.
func (c copyBuilder) typed(d document, o *unstructured.Unstructured) (cluster.Object, error) { //nolint:ireturn // of any kind
	if !d.OfPlatform() {
		return o, nil
	}
	var to cluster.Object
	switch d.Kind() {
	case "Job":
		to = &batchv1.Job{}
	case "ConfigMap":
		to = &corev1.ConfigMap{}
	default:
		to = &corev1.Service{}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, to, true); err != nil {
		return nil, refusal.Descriptor("%s: %s %q cannot be read: %v", c.Descriptor.ObjectsKey(), d.Kind(), d.Name(), err)
	}
	if bad := validation.IsDNS1123Label(to.GetName()); len(bad) > 0 {
		return nil, refusal.Descriptor("%s: %s %q: %s", c.Descriptor.ObjectsKey(), d.Kind(), d.Name(), strings.Join(bad, "; "))
	}
	return to, nil
}
