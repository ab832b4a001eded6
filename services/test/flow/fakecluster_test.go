package flow_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

type (
	job       = batchv1.Job
	podObject = corev1.Pod
	podAction = func(*job, *podObject) // a change of the job and the pod of an attempt
)

// attemptKey is one attempt of a run.
type attemptKey struct {
	run     string
	attempt int
}

// fakeCluster is a cluster whose pods follow a script. It keeps the contract of a
// cluster; deleted objects are gone at once.
type fakeCluster struct {
	mu               sync.Mutex
	objects          map[string]cluster.Object // by kind and name
	jobs             map[attemptKey]*batchv1.Job
	pods             map[attemptKey]corev1.Pod
	secrets          map[string]map[string][]byte // by run; of the last attempt
	watches          []chan attemptKey
	uids             int
	writes           int                     // creations and deletions that were asked for
	refuseWith       *cluster.RefusedError   // answer to every creation, nil for none
	launchedAttempts map[string]map[int]bool // attempts that had a Job, by run
}

func newFakeCluster() *fakeCluster {
	return &fakeCluster{
		objects: make(map[string]cluster.Object), jobs: make(map[attemptKey]*batchv1.Job), pods: make(map[attemptKey]corev1.Pod),
		secrets: make(map[string]map[string][]byte), launchedAttempts: make(map[string]map[int]bool),
	}
}

func attemptOf(o cluster.Object) attemptKey {
	attempt, _ := strconv.Atoi(o.GetLabels()[cluster.LabelAttempt]) // 0 is no attempt
	return attemptKey{o.GetLabels()[cluster.LabelRun], attempt}
}

// Create implements cluster.Creator.
func (s *fakeCluster) Create(ctx context.Context, o cluster.Object) error {
	if err := s.checkRefusal(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := o.GetObjectKind().GroupVersionKind().Kind + " " + o.GetName()
	if _, ok := s.objects[key]; ok {
		return cluster.ErrExists
	}
	s.uids++
	o.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
	o.SetCreationTimestamp(metav1.Now())
	s.objects[key] = o
	switch o := o.(type) {
	case *batchv1.Job:
		s.schedule(o)
	case *corev1.Secret:
		s.secrets[attemptOf(o).run] = o.Data
	}
	return nil
}

// checkRefusal counts a creation, and returns the error if the cluster takes no objects.
// A refusal takes time, so that events published meanwhile come first.
func (s *fakeCluster) checkRefusal(ctx context.Context) error {
	s.mu.Lock()
	s.writes++
	refused := s.refuseWith
	s.mu.Unlock()
	if refused == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second):
		return refused
	}
}

// schedule gives a job its pod, which waits for the scene.
func (s *fakeCluster) schedule(job *batchv1.Job) {
	t := attemptOf(job)
	s.jobs[t] = job.DeepCopy()
	if s.launchedAttempts[t.run] == nil {
		s.launchedAttempts[t.run] = make(map[int]bool)
	}
	s.launchedAttempts[t.run][t.attempt] = true
	p := corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	p.Name, p.UID, p.CreationTimestamp = job.Name+"-0", types.UID("pod-of-"+string(job.UID)), metav1.Now()
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	s.pods[t] = p
	s.changed(t)
}

// Delete implements cluster.Deleter.
func (s *fakeCluster) Delete(_ context.Context, r cluster.Ref) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	t := attemptKey{r.Run, r.Attempt}
	maps.DeleteFunc(s.objects, func(_ string, o cluster.Object) bool { return attemptOf(o) == t })
	delete(s.jobs, t)
	delete(s.pods, t)
	s.changed(t)
	return nil
}

// Stop implements cluster.Stopper. Pods here have one role, which has ended.
func (s *fakeCluster) Stop(context.Context, cluster.Ref) error { return nil }

// Observe implements cluster.Observer.
func (s *fakeCluster) Observe(_ context.Context, r cluster.Ref) (cluster.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen(attemptKey{r.Run, r.Attempt})
	if seen.Job == nil || r.UID != "" && string(seen.Job.UID) != r.UID {
		return cluster.Snapshot{}, cluster.ErrNotFound
	}
	seen.Ref = r
	return seen, nil
}

// Labels implements cluster.Labeler.
func (*fakeCluster) Labels(context.Context, string, string, string) (map[string]string, error) {
	return nil, cluster.ErrNotFound
}

// Watch implements cluster.Observer.
func (s *fakeCluster) Watch(ctx context.Context, see func(cluster.Snapshot)) error {
	changes := make(chan attemptKey, 1000)
	s.mu.Lock()
	s.watches = append(s.watches, changes)
	for t := range s.jobs {
		changes <- t
	}
	s.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return nil
		case t := <-changes:
			s.mu.Lock()
			seen := s.seen(t)
			s.mu.Unlock()
			see(seen)
		}
	}
}

func (s *fakeCluster) changed(t attemptKey) {
	for _, w := range s.watches {
		w <- t
	}
}

func (s *fakeCluster) seen(t attemptKey) cluster.Snapshot {
	seen := cluster.Snapshot{Ref: cluster.Ref{Run: t.run, Attempt: t.attempt}}
	job, ok := s.jobs[t]
	if !ok {
		return seen
	}
	pod := s.pods[t]
	seen.Job, seen.Pods = job.DeepCopy(), []corev1.Pod{*pod.DeepCopy()}
	seen.Ref.Job, seen.Ref.Scope, seen.Ref.UID = job.Name, job.Namespace, string(job.UID)
	return seen
}

// apply changes the objects of the active attempt of a run, and reports whether it
// exists.
func (s *fakeCluster) apply(run string, a podAction) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t, job := range s.jobs {
		if t.run == run {
			pod := s.pods[t]
			a(job, &pod)
			s.pods[t] = pod
			s.changed(t)
			return true
		}
	}
	return false
}

// startContainers has the benchmark of a pod begin.
func startContainers(_ *batchv1.Job, p *corev1.Pod) {
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	p.Status.Phase = corev1.PodRunning
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: cluster.ContainerCollect, Started: new(true), State: runs}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: cluster.ContainerBenchmark, Started: new(true), State: runs}}
}

// exitWith has the benchmark of a pod end with a code, and its job with it.
func exitWith(code int32) podAction {
	return func(j *batchv1.Job, p *corev1.Pod) {
		b := &p.Status.ContainerStatuses[0]
		t := &corev1.ContainerStateTerminated{ExitCode: code, StartedAt: b.State.Running.StartedAt, FinishedAt: metav1.Now()}
		b.State = corev1.ContainerState{Terminated: t}
		if code == 0 {
			p.Status.Phase = corev1.PodSucceeded
			finish(j, batchv1.JobComplete)
			return
		}
		p.Status.Phase = corev1.PodFailed
		finish(j, batchv1.JobFailed)
	}
}

// evict has the node of a pod have no more room for it.
func evict(j *batchv1.Job, p *corev1.Pod) {
	p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "the node was low on memory"
	finish(j, batchv1.JobFailed)
}

func finish(j *batchv1.Job, how batchv1.JobConditionType) {
	j.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now())}}
}

// refuse makes the cluster refuse objects, or accept them again.
func (s *fakeCluster) refuse(with *cluster.RefusedError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuseWith = with
}

// podSecret returns the Secret of a run's pod, by file.
func (s *fakeCluster) podSecret(run string) map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.secrets[run]
}

// remaining returns the objects in the cluster.
func (s *fakeCluster) remaining() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// writeCount returns how many creations and deletions were asked for so far.
func (s *fakeCluster) writeCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// attempts returns how many attempts of a run had a job.
func (s *fakeCluster) attempts(run string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.launchedAttempts[run])
}
