package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/control/queue"
)

// byAttempt is the index of jobs and pods by their attempt.
const byAttempt = "attempt"

// clusterCache is the state of a cluster that all watchers share: the jobs and pods of runs, without unused fields, and the informative
// events.
type clusterCache struct {
	log    *zap.Logger
	jobs   cache.SharedIndexInformer
	pods   cache.SharedIndexInformer
	others []cache.SharedIndexInformer // of objects of operators, as the Jobs that they stand for
	events *eventCache

	// unlabeled are the pods without the labels of a run, some of which objects of operators select;
	// nil if there are no such objects.
	unlabeled cache.SharedIndexInformer

	mu         sync.Mutex
	watchers   map[*queue.Queue[attempt]]struct{}
	lastErrors map[string]error // by verb and kind: the error of the last list or watch
}

// sharedCache returns the cache that all watchers share, and starts it on the first call.
func (c *Cluster) sharedCache() (*clusterCache, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	if c.cache != nil {
		return c.cache, nil
	}
	shared := &clusterCache{log: c.log, watchers: map[*queue.Queue[attempt]]struct{}{}, lastErrors: map[string]error{}}
	if err := shared.build(c); err != nil {
		return nil, err
	}
	// recordError logs errors once: client-go must not log them too.
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	c.stop = stop
	for _, i := range shared.informers() {
		c.wg.Go(func() { i.RunWithContext(ctx) })
	}
	c.wg.Go(func() { shared.runEventReflector(ctx, c) })
	c.cache = shared
	return shared, nil
}

// errClosed means that the cluster was closed.
var errClosed = errors.New("the cluster is closed")

func (k *clusterCache) build(c *Cluster) error {
	scope := c.settings.Scope()
	k.events = newEventCache(k.onEvent)
	k.jobs = k.informer(&batchv1.Job{}, runListWatch(k, "jobs",
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.batch.Jobs(scope).List(ctx, o)
		},
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.batch.Jobs(scope).Watch(ctx, o)
		}))
	k.pods = k.informer(&corev1.Pod{}, runListWatch(k, "pods",
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.core.Pods(scope).List(ctx, o)
		},
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.core.Pods(scope).Watch(ctx, o)
		}))
	if k.others = k.objectInformers(c); len(k.others) > 0 {
		k.unlabeled = k.unlabeledInformer(c)
	}
	for _, i := range k.informers() {
		strip := stripUnused
		if i == k.unlabeled {
			strip = stripUnlabeled
		}
		if err := i.SetTransform(strip); err != nil {
			return fmt.Errorf("watch the cluster: %w", err)
		}
		if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: k.onObjectChange, DeleteFunc: k.onObjectChange, UpdateFunc: func(_, now any) { k.onObjectChange(now) },
		}); err != nil {
			return fmt.Errorf("watch the cluster: %w", err)
		}
	}
	return nil
}

// informers returns the informers of the objects of runs.
func (k *clusterCache) informers() []cache.SharedIndexInformer {
	all := append([]cache.SharedIndexInformer{k.jobs, k.pods}, k.others...)
	if k.unlabeled != nil {
		all = append(all, k.unlabeled)
	}
	return all
}

func (k *clusterCache) informer(example runtime.Object, lw *cache.ListWatch) cache.SharedIndexInformer { //nolint:ireturn // there is no other type of it
	return cache.NewSharedIndexInformer(lw, example, 0, cache.Indexers{byAttempt: func(o any) ([]string, error) {
		if object, err := meta.Accessor(o); err == nil {
			if at, ok := attemptOf(object); ok {
				return []string{at.key()}, nil
			}
		}
		return nil, nil
	}, bySelection: indexSelection})
}

type (
	listFunc  = func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watchFunc = func(context.Context, metav1.ListOptions) (watch.Interface, error)
)

// runListWatch lists and watches objects with the label of a run, and records errors.
func runListWatch(k *clusterCache, kind string, list listFunc, watch watchFunc) *cache.ListWatch {
	return errorRecordingListWatch(k, kind, func(o *metav1.ListOptions) { o.LabelSelector = cluster.LabelRun }, list, watch)
}

func errorRecordingListWatch(
	k *clusterCache, kind string, tweak func(*metav1.ListOptions), list listFunc, watchAll watchFunc,
) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			tweak(&o)
			all, err := list(ctx, o)
			k.recordError(kind, "list", err)
			return all, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			tweak(&o)
			w, err := watchAll(ctx, o)
			k.recordError(kind, "watch", err)
			return w, err
		},
	}
}

// recordError records whether a kind can be listed and watched, and logs a change once. A successful watch clears an error of the list,
// because the API server may stream the existing objects through the watch.
func (k *clusterCache) recordError(kind, verb string, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	err = wrapError(verb+" "+kind, err)
	k.mu.Lock()
	was, key := len(k.lastErrors), verb+" "+kind
	before := k.lastErrors[key]
	switch {
	case err != nil:
		k.lastErrors[key] = err
	case verb == "watch":
		delete(k.lastErrors, "list "+kind)
		delete(k.lastErrors, key)
	default:
		delete(k.lastErrors, key)
	}
	now := len(k.lastErrors)
	k.mu.Unlock()
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		k.log.Error("cannot see the cluster", zap.Error(err))
	case now == 0 && was > 0:
		k.log.Info("can see the cluster again")
	}
}

// syncError returns why the cache is incomplete, nil if it is complete.
func (k *clusterCache) syncError() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, err := range k.lastErrors {
		return err
	}
	if !k.hasSynced() {
		return errors.New("what the cluster holds is not known yet")
	}
	return nil
}

func (k *clusterCache) hasSynced() bool {
	for _, i := range k.informers() {
		if !i.HasSynced() {
			return false
		}
	}
	return k.events.hasSynced()
}

// runEventReflector keeps the event cache up to date until ctx is done.
func (k *clusterCache) runEventReflector(ctx context.Context, c *Cluster) {
	scope := c.settings.Scope()
	lw := errorRecordingListWatch(k, "events", func(*metav1.ListOptions) {},
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.core.Events(scope).List(ctx, o)
		},
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.core.Events(scope).Watch(ctx, o)
		})
	cache.NewReflectorWithOptions(lw, &corev1.Event{}, k.events, cache.ReflectorOptions{Name: "events"}).RunWithContext(ctx)
}

// onObjectChange notifies all watchers that an object of an attempt has changed.
func (k *clusterCache) onObjectChange(o any) {
	if deleted, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = deleted.Obj
	}
	object, err := meta.Accessor(o)
	if err != nil {
		return
	}
	if at, ok := attemptOf(object); ok {
		k.notify(at)
	} else if p, ok := o.(*corev1.Pod); ok {
		k.notifySelecting(p)
	}
}

// onEvent notifies all watchers of an event about a run's job or pod.
func (k *clusterCache) onEvent(e *corev1.Event) {
	about := k.others
	switch e.InvolvedObject.Kind {
	case "Job":
		about = []cache.SharedIndexInformer{k.jobs}
	case "Pod":
		about = []cache.SharedIndexInformer{k.pods}
		if k.unlabeled != nil {
			about = append(about, k.unlabeled)
		}
	}
	for _, i := range about {
		if o, ok, err := i.GetStore().GetByKey(e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name); err == nil && ok {
			k.onObjectChange(o)
		}
	}
}

// snapshot returns the cached state of an attempt, and whether there is any.
func (k *clusterCache) snapshot(at attempt, ref *cluster.Ref) (cluster.Snapshot, bool) {
	jobs, pods := objectsOf[*batchv1.Job](k.jobs, at), objectsOf[*corev1.Pod](k.pods, at)
	for _, i := range k.others {
		jobs = append(jobs, objectsOf[*batchv1.Job](i, at)...)
	}
	pods = append(pods, k.selectedPods(jobs)...)
	if ref != nil && mainJob(ref, jobs) == nil && mainJob(nil, jobs) != nil && mainJob(nil, jobs).Name == ref.Job {
		ref = nil // made anew under its name
	}
	seen, found := snapshotOf(at, ref, jobs, pods)
	seen.Events = k.events.eventsFor(eventSubjects(seen))
	return seen, found
}

func objectsOf[T any](i cache.SharedIndexInformer, at attempt) []T {
	objects, _ := i.GetIndexer().ByIndex(byAttempt, at.key()) // the index exists
	all := make([]T, 0, len(objects))
	for _, o := range objects {
		if t, ok := o.(T); ok {
			all = append(all, t)
		}
	}
	return all
}

// attempts returns every attempt that has a cached object.
func (k *clusterCache) attempts() []attempt {
	seen := map[attempt]bool{}
	var all []attempt
	for _, i := range k.informers() {
		for _, o := range i.GetStore().List() {
			if object, err := meta.Accessor(o); err == nil {
				if at, ok := attemptOf(object); ok && !seen[at] {
					seen[at] = true
					all = append(all, at)
				}
			}
		}
	}
	return all
}

// stripUnused removes unused and large fields from a job or pod. It replaces an object of an operator by the Job
// that it stands for, if it stands for one, and gives the measured container of each pod its name.
func stripUnused(o any) (any, error) {
	switch o := o.(type) {
	case *unstructured.Unstructured:
		j, err := jobFromObject(o)
		if err != nil {
			return nil, err
		}
		if j == nil {
			o.SetManagedFields(nil)
			return o, nil
		}
		j.ManagedFields = nil
		return j, nil
	case *batchv1.Job:
		o.ManagedFields = nil
		stripPodSpec(&o.Spec.Template.Spec)
	case *corev1.Pod:
		o.ManagedFields = nil
		nameMeasured(o)
		if peers := o.Annotations[cluster.AnnotationPeers]; peers != "" {
			o.Annotations[cluster.AnnotationPeers] = cluster.PeersSum(peers)
		}
		stripPodSpec(&o.Spec)
	}
	return o, nil
}

func stripPodSpec(s *corev1.PodSpec) {
	s.Volumes = nil
	for _, cs := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range cs {
			cs[i].Env, cs[i].EnvFrom, cs[i].VolumeMounts = nil, nil, nil
			if cs[i].Name != cluster.ContainerWait { // its arguments name the pods for which it waits
				cs[i].Args = nil
			}
		}
	}
}

// resync is how often everything is handed over again.
func (c *Cluster) resync() time.Duration { return cmp.Or(c.settings.Resync, time.Minute) }
