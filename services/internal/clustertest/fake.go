package clustertest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/control/queue"
)

// Action changes a Job and its pod, as an event in a cluster does.
type Action func(*batchv1.Job, *corev1.Pod)

// Fake is a cluster in memory that passes the part of the suite that runs no programs. Each Job has one pod, which waits until an Action
// starts it. Deletion and Stop take effect at once.
type Fake struct {
	// Script returns the actions on a Job that was just created; nil means none.
	Script func(*batchv1.Job) []Action
	// Nodes are the nodes of the cluster, each for one living pod at a time, as if all were exclusive: other pods wait, in the order of
	// their creation. Nil stands for as many nodes as are needed, without names.
	Nodes []corev1.Node

	mu       sync.Mutex
	uids     int
	objects  map[string]cluster.Object // by kind and name
	jobs     map[string]*scriptedJob   // by name
	watchers map[*queue.Queue[attempt]]struct{}
}

// attempt names one attempt of a run.
type attempt struct {
	run    string
	number int
}

// scriptedJob is a Job and its pod.
type scriptedJob struct {
	number int // in the order of creation
	job    batchv1.Job
	pod    corev1.Pod
}

// NewFake returns an empty cluster.
func NewFake() *Fake {
	return &Fake{
		objects: make(map[string]cluster.Object), jobs: make(map[string]*scriptedJob), watchers: make(map[*queue.Queue[attempt]]struct{}),
	}
}

func attemptOf(o metav1.Object) attempt {
	n, _ := strconv.Atoi(o.GetLabels()[cluster.LabelAttempt]) // 0 is no attempt
	return attempt{o.GetLabels()[cluster.LabelRun], n}
}

// Create implements cluster.Creator.
func (f *Fake) Create(_ context.Context, o cluster.Object) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := o.GetObjectKind().GroupVersionKind().Kind + " " + o.GetName()
	if _, ok := f.objects[key]; ok {
		return fmt.Errorf("create %s: %w", key, cluster.ErrExists)
	}
	f.uids++
	o.SetUID(types.UID(fmt.Sprintf("uid-%d", f.uids)))
	o.SetCreationTimestamp(metav1.Now())
	f.objects[key] = o
	if j, ok := o.(*batchv1.Job); ok {
		f.schedule(j)
	}
	return nil
}

// schedule creates the pod of a Job, and applies the actions of the script.
func (f *Fake) schedule(j *batchv1.Job) {
	spec := j.Spec.Template
	s := &scriptedJob{f.uids, *j.DeepCopy(), corev1.Pod{ObjectMeta: *spec.ObjectMeta.DeepCopy(), Spec: *spec.Spec.DeepCopy()}}
	s.pod.Name, s.pod.UID, s.pod.CreationTimestamp = j.Name+"-0", types.UID("pod-of-"+string(j.UID)), metav1.Now()
	s.pod.Status.Phase = corev1.PodPending
	s.pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.Now(),
	}}
	f.jobs[j.Name] = s
	f.assignNodes()
	f.notify(attemptOf(j))
	if f.Script == nil {
		return
	}
	for _, act := range f.Script(j) {
		act(&s.job, &s.pod)
	}
}

// assignNodes gives free nodes to the pods that wait for one. The caller holds the lock.
func (f *Fake) assignNodes() {
	if f.Nodes == nil {
		return
	}
	free := make(map[string]bool)
	for i := range f.Nodes {
		free[f.Nodes[i].Name] = true
	}
	jobs := slices.SortedFunc(maps.Values(f.jobs), func(a, b *scriptedJob) int { return cmp.Compare(a.number, b.number) })
	for _, s := range jobs {
		if cluster.Alive(s.pod) {
			delete(free, s.pod.Spec.NodeName)
		}
	}
	for _, s := range jobs {
		if s.pod.Spec.NodeName != "" || !cluster.Alive(s.pod) {
			continue
		}
		c := &s.pod.Status.Conditions[0]
		if names := slices.Sorted(maps.Keys(free)); len(names) > 0 {
			delete(free, names[0])
			s.pod.Spec.NodeName, c.Status, c.Reason, c.Message, c.LastTransitionTime = names[0], corev1.ConditionTrue, "", "", metav1.Now()
			f.notify(attemptOf(&s.job))
		} else if c.Status == corev1.ConditionTrue {
			c.Status, c.Reason = corev1.ConditionFalse, corev1.PodReasonUnschedulable
			c.Message = fmt.Sprintf("0/%[1]d nodes are available: %[1]d node(s) didn't match pod anti-affinity rules.", len(f.Nodes))
		}
	}
}

// Act applies an action to the newest Job of a run, and reports whether there is one.
func (f *Fake) Act(run string, act Action) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	var last *scriptedJob
	for _, s := range f.jobs {
		if at := attemptOf(&s.job); at.run == run && (last == nil || at.number > attemptOf(&last.job).number) {
			last = s
		}
	}
	if last == nil {
		return false
	}
	act(&last.job, &last.pod)
	f.notify(attemptOf(&last.job))
	f.assignNodes()
	return true
}

// Annotate implements cluster.Annotator.
func (f *Fake) Annotate(_ context.Context, p corev1.Pod, name, value string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.jobs {
		if s.pod.Name != p.Name || s.pod.UID != p.UID {
			continue
		}
		all := maps.Clone(s.pod.Annotations)
		if all == nil {
			all = map[string]string{}
		}
		all[name] = value
		s.pod.Annotations = all
		f.notify(attemptOf(&s.job))
	}
	return nil
}

// Objects returns kind and name of all objects, sorted.
func (f *Fake) Objects() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.objects))
}

// Delete implements cluster.Deleter.
func (f *Fake) Delete(_ context.Context, r cluster.Ref) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := attempt{r.Run, r.Attempt}
	if s := f.jobs[r.Job]; s != nil && r.UID != "" && string(s.job.UID) != r.UID {
		return nil
	}
	maps.DeleteFunc(f.objects, func(_ string, o cluster.Object) bool { return attemptOf(o) == at })
	maps.DeleteFunc(f.jobs, func(_ string, s *scriptedJob) bool { return attemptOf(&s.job) == at })
	f.notify(at)
	f.assignNodes()
	return nil
}

// Stop implements cluster.Stopper.
func (f *Fake) Stop(_ context.Context, r cluster.Ref) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := attempt{r.Run, r.Attempt}
	for _, s := range f.jobs {
		if attemptOf(&s.job) != at || !cluster.Alive(s.pod) {
			continue
		}
		if len(s.pod.Status.ContainerStatuses) > 0 {
			Exit(143)(&s.job, &s.pod)
		} else {
			s.pod.Status.Phase = corev1.PodFailed
			finish(&s.job, batchv1.JobFailed, "DeadlineExceeded")
		}
	}
	f.notify(at)
	f.assignNodes()
	return nil
}

// Observe implements cluster.Observer.
func (f *Fake) Observe(_ context.Context, r cluster.Ref) (cluster.Snapshot, error) {
	seen := f.snapshot(attempt{r.Run, r.Attempt})
	if seen.Job == nil || r.UID != "" && seen.Job.Name == r.Job && string(seen.Job.UID) != r.UID {
		return cluster.Snapshot{}, fmt.Errorf("job %s: %w", r.Job, cluster.ErrNotFound)
	}
	return seen, nil
}

// Occupancy implements cluster.Occupier.
func (f *Fake) Occupancy(context.Context) (cluster.Occupancy, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := cluster.Occupancy{Nodes: f.Nodes}
	for _, name := range slices.Sorted(maps.Keys(f.jobs)) {
		if p := f.jobs[name].pod; cluster.Alive(p) {
			all.Pods = append(all.Pods, *p.DeepCopy())
		}
	}
	return all, nil
}

// Labels implements cluster.Labeler: the fake has no such objects.
func (*Fake) Labels(context.Context, string, string, string) (map[string]string, error) {
	return nil, cluster.ErrNotFound
}

// Watch implements cluster.Observer.
func (f *Fake) Watch(ctx context.Context, handle func(cluster.Snapshot)) error {
	changes := queue.New[attempt](zap.NewNop(), queue.Settings[attempt]{})
	f.mu.Lock()
	f.watchers[changes] = struct{}{}
	for _, s := range f.jobs {
		changes.Add(attemptOf(&s.job))
	}
	f.mu.Unlock()
	delivered := map[attempt]cluster.Ref{}
	return changes.Run(ctx, 1, func(_ context.Context, at attempt) (queue.Result, error) {
		seen := f.snapshot(at)
		if seen.Job == nil {
			seen.Ref = cmp.Or(delivered[at], seen.Ref)
		}
		delivered[at] = seen.Ref
		handle(seen)
		return queue.Result{}, nil
	})
}

// notify adds an attempt to the queues of all watchers. The caller holds the lock.
func (f *Fake) notify(at attempt) {
	for w := range f.watchers {
		w.Add(at)
	}
}

// snapshot returns the jobs and pods of an attempt. The main Job, whose end ends it, has the shortest name.
func (f *Fake) snapshot(at attempt) cluster.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := cluster.Snapshot{Ref: cluster.Ref{Run: at.run, Attempt: at.number}}
	names := slices.Sorted(maps.Keys(f.jobs))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	for _, name := range names {
		s := f.jobs[name]
		if attemptOf(&s.job) != at {
			continue
		}
		if seen.Pods = append(seen.Pods, *s.pod.DeepCopy()); seen.Job != nil {
			seen.Others = append(seen.Others, *s.job.DeepCopy())
			continue
		}
		seen.Job = s.job.DeepCopy()
		seen.Ref.Job, seen.Ref.Scope, seen.Ref.UID = s.job.Name, s.job.Namespace, string(s.job.UID)
	}
	return seen
}

// Start has the benchmark of a pod begin.
func Start(j *batchv1.Job, p *corev1.Pod) {
	j.Status.StartTime = new(metav1.Now())
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	p.Status.Phase = corev1.PodRunning
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: cluster.ContainerCollect, Started: new(true), State: runs}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: cluster.ContainerBenchmark, Started: new(true), State: runs}}
}

// Exit ends the benchmark of a started pod with a code, and its Job with it.
func Exit(code int32) Action {
	return func(j *batchv1.Job, p *corev1.Pod) {
		b := &p.Status.ContainerStatuses[0]
		t := &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: "Completed",
			StartedAt: b.State.Running.StartedAt, FinishedAt: metav1.Now(),
		}
		b.State = corev1.ContainerState{Terminated: t}
		if code == 0 {
			p.Status.Phase, j.Status.Succeeded, j.Status.CompletionTime = corev1.PodSucceeded, 1, new(metav1.Now())
			finish(j, batchv1.JobComplete, "CompletionsReached")
			return
		}
		p.Status.Phase, t.Reason = corev1.PodFailed, "Error"
		finish(j, batchv1.JobFailed, "BackoffLimitExceeded")
	}
}

// Evict fails a pod as evicted, because its node was low on memory.
func Evict(j *batchv1.Job, p *corev1.Pod) {
	p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "the node was low on memory"
	finish(j, batchv1.JobFailed, "BackoffLimitExceeded")
}

func finish(j *batchv1.Job, how batchv1.JobConditionType, reason string) {
	if how == batchv1.JobFailed {
		j.Status.Failed = 1
	}
	j.Status.Conditions = []batchv1.JobCondition{{
		Type: how, Status: corev1.ConditionTrue, Reason: reason,
		LastTransitionTime: metav1.Now(),
	}}
}
