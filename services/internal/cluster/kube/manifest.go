package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/benchmark-ai/bai/descriptors/manifest"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/mpijob"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// ValidateManifests returns an error for each kind of manifests (Workflow.v1alpha1.argoproj.io) whose resource the settings lack.
func ValidateManifests[Kind any](s Settings, kinds map[string]Kind) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if resource := resourceName(name); resource != "" && !slices.Contains(s.Kinds, resource) {
			errs = append(errs, fmt.Errorf("executor.pods.manifests.%q: kubernetes.kinds does not name %q, so that nobody would see what becomes of such an object", name, resource))
		}
	}
	return errors.Join(errs...)
}

// resourceName returns the resource of a kind (workflows.v1alpha1.argoproj.io), or "" for a kind of the core group, which needs no
// operator.
func resourceName(kind string) string {
	gvk, _ := schema.ParseKindArg(kind)
	if gvk == nil {
		return ""
	}
	r := resourceOf(*gvk)
	return strings.Join([]string{r.Resource, r.Version, r.Group}, ".")
}

// objectKinds returns the kinds of the settings whose objects may end a run. Those of groups of pods never do.
func (s Settings) objectKinds() []schema.GroupVersionResource {
	var all []schema.GroupVersionResource
	for _, name := range s.Kinds {
		if gvr, _ := schema.ParseResourceArg(name); gvr != nil && gvr.Resource != "podgroups" {
			all = append(all, *gvr)
		}
	}
	return all
}

// objectInformers returns an informer for each kind of objects that may end a run. A kind that the cluster does not have has no objects.
func (k *clusterCache) objectInformers(c *Cluster) []cache.SharedIndexInformer {
	var all []cache.SharedIndexInformer
	for _, kind := range c.settings.objectKinds() {
		objects := c.objects.Resource(kind).Namespace(c.settings.Scope())
		all = append(all, k.informer(&unstructured.Unstructured{}, runListWatch(k, kind.Resource,
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				list, err := objects.List(ctx, o)
				if apierrors.IsNotFound(err) {
					return &unstructured.UnstructuredList{}, nil
				}
				return list, err
			},
			func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				w, err := objects.Watch(ctx, o)
				if apierrors.IsNotFound(err) {
					return watch.NewEmptyWatch(), nil // it ends at once, and the next list comes after a growing pause
				}
				return w, err
			})))
	}
	return all
}

// jobFromObject returns the Job that an object of an operator stands for: an MPIJob of the platform's, or an object of a manifest that ends
// its run. It returns nil for any other.
func jobFromObject(o *unstructured.Unstructured) (*batchv1.Job, error) {
	text := o.GetAnnotations()[cluster.AnnotationSucceeded]
	if text == "" {
		if o.GetAPIVersion() == mpijob.APIVersion && o.GetKind() == mpijob.Kind {
			return jobFromMPIJob(o)
		}
		return nil, nil //nolint:nilnil // it stands for none
	}
	j := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}}
	meta, _, _ := unstructured.NestedMap(o.Object, "metadata")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(meta, &j.ObjectMeta); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	ends := map[batchv1.JobConditionType]string{
		batchv1.JobComplete: text, batchv1.JobFailed: o.GetAnnotations()[cluster.AnnotationFailed],
		batchv1.JobSuspended: "condition=Suspended",
	}
	for _, t := range slices.Sorted(maps.Keys(ends)) {
		c, err := manifest.ParseCondition(ends[t])
		if err != nil {
			continue // it never holds
		}
		if state, ok := c.Holds(o.Object); ok {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
				Type: t, Status: corev1.ConditionTrue, Reason: state.Reason, Message: state.Message,
				LastTransitionTime: metav1.NewTime(state.Since),
			})
		}
	}
	if kind, ok := manifest.Find(o.GetAPIVersion(), o.GetKind()); ok {
		setSpec(j, kind, o)
	}
	return j, nil
}

// setSpec sets deadline and suspension, as far as the object has them.
func setSpec(j *batchv1.Job, kind manifest.Kind, o *unstructured.Unstructured) {
	if seconds, ok, _ := unstructured.NestedInt64(o.Object, strings.Split(kind.Deadline, ".")...); ok {
		j.Spec.ActiveDeadlineSeconds = &seconds
	}
	if suspended, ok, _ := unstructured.NestedBool(o.Object, strings.Split(kind.Suspend, ".")...); ok {
		j.Spec.Suspend = &suspended
	}
}

// listObjects returns the Jobs that the objects of an attempt stand for.
func (c *Cluster) listObjects(ctx context.Context, at attempt) ([]*batchv1.Job, error) {
	var all []*batchv1.Job
	for _, kind := range c.settings.objectKinds() {
		list, err := c.objects.Resource(kind).Namespace(at.scope).List(ctx, metav1.ListOptions{LabelSelector: at.selector()})
		if apierrors.IsNotFound(err) {
			continue // the cluster does not have the kind
		}
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			j, err := jobFromObject(&list.Items[i])
			if err != nil {
				return nil, err
			}
			if j != nil {
				all = append(all, j)
			}
		}
	}
	return all, nil
}

// nameMeasured gives the measured container of a pod of a manifest the name that it has in every other pod. If it does not run under the
// platform's program, it has no command, as that of an image's own entrypoint.
func nameMeasured(p *corev1.Pod) {
	measured := p.Annotations[cluster.AnnotationContainer]
	if measured == "" {
		return
	}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		if c.Name != measured {
			continue
		}
		c.Name = cluster.ContainerBenchmark
		if len(c.Command) == 0 || c.Command[0] != pod.PathIn("", pod.Binary) {
			c.Command = nil
		}
	}
	for i := range p.Status.ContainerStatuses {
		if p.Status.ContainerStatuses[i].Name == measured {
			p.Status.ContainerStatuses[i].Name = cluster.ContainerBenchmark
		}
	}
}

// containerOf returns the name that a container of a pod has in the cluster. The pod is one that the watchers have seen.
func (c *Cluster) containerOf(l cluster.Log) string {
	c.mu.Lock()
	shared := c.cache
	c.mu.Unlock()
	if l.Container != cluster.ContainerBenchmark || shared == nil {
		return l.Container
	}
	for _, i := range []cache.SharedIndexInformer{shared.pods, shared.unlabeled} {
		if i == nil {
			continue
		}
		o, ok, err := i.GetStore().GetByKey(l.Scope + "/" + l.Pod)
		if p, is := o.(*corev1.Pod); ok && err == nil && is {
			return cmp.Or(p.Annotations[cluster.AnnotationContainer], l.Container)
		}
	}
	return l.Container
}
