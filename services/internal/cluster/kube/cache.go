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
	"github.com/benchmark-ai/bai/services/internal/mpijob"
)

// byAttempt is the index of jobs and pods by their attempt.
const byAttempt = "attempt"

// cacheOf is what all that watch know of a cluster: the jobs and pods of runs,
// without what nobody asks about, and the events that tell something.
type cacheOf struct {
	log  *zap.Logger
	jobs cache.SharedIndexInformer
	pods cache.SharedIndexInformer
	mpis cache.SharedIndexInformer // of the Jobs that MPIJobs stand for; nil where there is no operator
	book *book

	mu       sync.Mutex
	watchers map[*watcher]struct{}
	trouble  map[string]error // by verb and kind: why it could not be listed or watched last
}

// watched returns what all that watch know, and begins to know it with the first.
func (c *Cluster) watched() (*cacheOf, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	if c.cache != nil {
		return c.cache, nil
	}
	known := &cacheOf{log: c.log, watchers: map[*watcher]struct{}{}, trouble: map[string]error{}}
	if err := known.build(c); err != nil {
		return nil, err
	}
	// What goes wrong is noted, and said once: client-go need not say it too.
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	c.stop = stop
	for _, i := range known.informers() {
		c.wg.Go(func() { i.RunWithContext(ctx) })
	}
	c.wg.Go(func() { known.readEvents(ctx, c) })
	c.cache = known
	return known, nil
}

// errClosed says that the cluster was closed.
var errClosed = errors.New("the cluster is closed")

func (k *cacheOf) build(c *Cluster) error {
	scope := c.settings.Scope()
	k.book = newBook(k.eventHeard)
	k.jobs = k.informer(&batchv1.Job{}, ofRuns(k, "jobs",
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.batch.Jobs(scope).List(ctx, o)
		},
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.batch.Jobs(scope).Watch(ctx, o)
		}))
	k.pods = k.informer(&corev1.Pod{}, ofRuns(k, "pods",
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.core.Pods(scope).List(ctx, o)
		},
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.core.Pods(scope).Watch(ctx, o)
		}))
	if c.operator() {
		k.mpis = k.informer(mpiExample(), ofRuns(k, "mpijobs",
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return c.objects.Resource(mpiResource()).Namespace(scope).List(ctx, o)
			},
			func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return c.objects.Resource(mpiResource()).Namespace(scope).Watch(ctx, o)
			}))
	}
	for _, i := range k.informers() {
		if err := i.SetTransform(lean); err != nil {
			return fmt.Errorf("watch the cluster: %w", err)
		}
		if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: k.changed, DeleteFunc: k.changed, UpdateFunc: func(_, now any) { k.changed(now) },
		}); err != nil {
			return fmt.Errorf("watch the cluster: %w", err)
		}
	}
	return nil
}

// informers are those of what belongs to runs.
func (k *cacheOf) informers() []cache.SharedIndexInformer {
	all := []cache.SharedIndexInformer{k.jobs, k.pods}
	if k.mpis != nil {
		all = append(all, k.mpis)
	}
	return all
}

func (k *cacheOf) informer(example runtime.Object, lw *cache.ListWatch) cache.SharedIndexInformer { //nolint:ireturn // there is no other type of it
	return cache.NewSharedIndexInformer(lw, example, 0, cache.Indexers{byAttempt: func(o any) ([]string, error) {
		if object, err := meta.Accessor(o); err == nil {
			if at, ok := attemptOf(object); ok {
				return []string{at.key()}, nil
			}
		}
		return nil, nil
	}})
}

type (
	lister      = func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watcherFunc = func(context.Context, metav1.ListOptions) (watch.Interface, error)
)

// ofRuns lists and watches what carries the label of a run, and notes what goes
// wrong with that.
func ofRuns(k *cacheOf, kind string, list lister, watch watcherFunc) *cache.ListWatch {
	return noted(k, kind, func(o *metav1.ListOptions) { o.LabelSelector = cluster.LabelRun }, list, watch)
}

func noted(k *cacheOf, kind string, tweak func(*metav1.ListOptions), list lister, watchAll watcherFunc) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			tweak(&o)
			all, err := list(ctx, o)
			k.note(kind, "list", err)
			return all, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			tweak(&o)
			w, err := watchAll(ctx, o)
			k.note(kind, "watch", err)
			return w, err
		},
	}
}

// note remembers whether a kind can be listed and watched, and says a change
// once. What can be watched can be seen, whether it is listed or not: the API
// server may stream what is there.
func (k *cacheOf) note(kind, verb string, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	err = explain(verb+" "+kind, err)
	k.mu.Lock()
	was, key := len(k.trouble), verb+" "+kind
	before := k.trouble[key]
	switch {
	case err != nil:
		k.trouble[key] = err
	case verb == "watch":
		delete(k.trouble, "list "+kind)
		delete(k.trouble, key)
	default:
		delete(k.trouble, key)
	}
	now := len(k.trouble)
	k.mu.Unlock()
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		k.log.Error("cannot see the cluster", zap.Error(err))
	case now == 0 && was > 0:
		k.log.Info("can see the cluster again")
	}
}

// why says why not all is known that is there.
func (k *cacheOf) why() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, err := range k.trouble {
		return err
	}
	if !k.synced() {
		return errors.New("what the cluster holds is not known yet")
	}
	return nil
}

func (k *cacheOf) synced() bool {
	for _, i := range k.informers() {
		if !i.HasSynced() {
			return false
		}
	}
	return k.book.synced()
}

// readEvents keeps the book of events until ctx is done.
func (k *cacheOf) readEvents(ctx context.Context, c *Cluster) {
	scope := c.settings.Scope()
	lw := noted(k, "events", func(*metav1.ListOptions) {},
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.core.Events(scope).List(ctx, o)
		},
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.core.Events(scope).Watch(ctx, o)
		})
	cache.NewReflectorWithOptions(lw, &corev1.Event{}, k.book, cache.ReflectorOptions{Name: "events"}).RunWithContext(ctx)
}

// changed lets all that watch know that something about an attempt has changed.
func (k *cacheOf) changed(o any) {
	if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = unknown.Obj
	}
	object, err := meta.Accessor(o)
	if err != nil {
		return
	}
	if at, ok := attemptOf(object); ok {
		k.notify(at)
	}
}

// eventHeard lets all that watch know of an event about a run's job or pod.
func (k *cacheOf) eventHeard(e *corev1.Event) {
	about := map[string]cache.SharedIndexInformer{"Job": k.jobs, "Pod": k.pods, mpijob.Kind: k.mpis}[e.InvolvedObject.Kind]
	if about == nil {
		return
	}
	if o, ok, err := about.GetStore().GetByKey(e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name); err == nil && ok {
		k.changed(o)
	}
}

// see returns what is known of an attempt.
func (k *cacheOf) see(at attempt, ref *cluster.Ref) (cluster.Seen, bool) {
	jobs, pods := of[*batchv1.Job](k.jobs, at), of[*corev1.Pod](k.pods, at)
	if k.mpis != nil {
		jobs = append(jobs, of[*batchv1.Job](k.mpis, at)...)
	}
	if ref != nil && mainJob(ref, jobs) == nil && mainJob(nil, jobs) != nil && mainJob(nil, jobs).Name == ref.Job {
		ref = nil // made anew under its name
	}
	seen, some := compose(at, ref, jobs, pods)
	seen.Events = k.book.of(subjects(seen))
	return seen, some
}

func of[T any](i cache.SharedIndexInformer, at attempt) []T {
	objects, _ := i.GetIndexer().ByIndex(byAttempt, at.key()) // the index is there
	all := make([]T, 0, len(objects))
	for _, o := range objects {
		if t, ok := o.(T); ok {
			all = append(all, t)
		}
	}
	return all
}

// all returns every attempt of which something is known.
func (k *cacheOf) all() []attempt {
	known := map[attempt]bool{}
	var all []attempt
	for _, i := range k.informers() {
		for _, o := range i.GetStore().List() {
			if object, err := meta.Accessor(o); err == nil {
				if at, ok := attemptOf(object); ok && !known[at] {
					known[at] = true
					all = append(all, at)
				}
			}
		}
	}
	return all
}

// lean takes from a job or pod what nobody asks about, and what is large. Of an
// MPIJob it leaves the Job that it stands for.
func lean(o any) (any, error) {
	switch o := o.(type) {
	case *unstructured.Unstructured:
		j, err := asJob(o)
		if err != nil {
			return nil, err
		}
		j.ManagedFields = nil
		return j, nil
	case *batchv1.Job:
		o.ManagedFields = nil
		leanPod(&o.Spec.Template.Spec)
	case *corev1.Pod:
		o.ManagedFields = nil
		leanPod(&o.Spec)
	}
	return o, nil
}

func leanPod(s *corev1.PodSpec) {
	s.Volumes = nil
	for _, cs := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range cs {
			cs[i].Env, cs[i].EnvFrom, cs[i].VolumeMounts, cs[i].Args = nil, nil, nil, nil
		}
	}
}

// resync is how often everything is handed over again.
func (c *Cluster) resync() time.Duration { return cmp.Or(c.settings.Resync, time.Minute) }
