package kube

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube/selection"
)

// bySelection is the index of objects that select pods, and of the pods that they may select, by
// the values of labels that both name.
const bySelection = "selection"

// indexSelection is the function of the index bySelection.
func indexSelection(o any) ([]string, error) {
	var names []string
	switch o := o.(type) {
	case *corev1.Pod:
		if o.Labels[cluster.LabelRun] == "" {
			names = selection.Names(o)
		}
	case *batchv1.Job:
		_, names = selection.Of(o)
	}
	object, err := meta.Accessor(o)
	if err != nil {
		return nil, nil //nolint:nilerr // client-go panics for an error, and it is in no index
	}
	keys := make([]string, 0, len(names))
	for _, name := range names {
		keys = append(keys, object.GetNamespace()+"/"+name)
	}
	return keys, nil
}

// unlabeledInformer returns an informer for the pods without the labels of a run, some of which
// objects of manifests select.
func (k *clusterCache) unlabeledInformer(c *Cluster) cache.SharedIndexInformer { //nolint:ireturn // there is no other type of it
	scope := c.settings.Scope()
	tweak := func(o *metav1.ListOptions) { o.LabelSelector = selection.Others }
	return k.informer(&corev1.Pod{}, errorRecordingListWatch(k, "pods of operators", tweak,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.core.Pods(scope).List(ctx, o)
		},
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.core.Pods(scope).Watch(ctx, o)
		}))
}

// notifySelecting notifies all watchers of the attempts whose objects select a pod.
func (k *clusterCache) notifySelecting(p *corev1.Pod) {
	keys, _ := indexSelection(p) // it has no error
	for _, i := range k.others {
		for _, key := range keys {
			objects, _ := i.GetIndexer().ByIndex(bySelection, key) // the index exists
			for _, o := range objects {
				if j, ok := o.(*batchv1.Job); ok && len(selection.Attach(j, []*corev1.Pod{p})) > 0 {
					k.onObjectChange(j)
				}
			}
		}
	}
}

// selectedPods returns the pods that the objects of an attempt select.
func (k *clusterCache) selectedPods(jobs []*batchv1.Job) []*corev1.Pod {
	if k.unlabeled == nil {
		return nil
	}
	var all []*corev1.Pod
	for _, j := range jobs {
		keys, _ := indexSelection(j) // it has no error
		for _, key := range keys {
			var pods []*corev1.Pod
			objects, _ := k.unlabeled.GetIndexer().ByIndex(bySelection, key) // the index exists
			for _, o := range objects {
				if p, ok := o.(*corev1.Pod); ok {
					pods = append(pods, p)
				}
			}
			all = append(all, selection.Attach(j, pods)...)
		}
	}
	return all
}

// listSelected reads the pods that the objects of an attempt select from the API server.
func (c *Cluster) listSelected(ctx context.Context, jobs []*batchv1.Job) ([]*corev1.Pod, error) {
	var all []*corev1.Pod
	for _, j := range jobs {
		s, names := selection.Of(j)
		if len(names) == 0 {
			continue
		}
		list, err := c.core.Pods(j.Namespace).List(ctx, metav1.ListOptions{LabelSelector: s.String() + "," + selection.Others})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			setMeasured(&list.Items[i])
		}
		all = append(all, selection.Attach(j, pointers(list.Items))...)
	}
	return all, nil
}
