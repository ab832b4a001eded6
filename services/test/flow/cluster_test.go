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
	act       = func(*job, *podObject) // what happens to the job and the pod of an attempt
)

// try is one attempt of a run.
type try struct {
	run     string
	attempt int
}

// stage is a cluster on which pods do what a scene says. It keeps the contract
// of a cluster; what is deleted is gone at once.
type stage struct {
	mu      sync.Mutex
	objects map[string]cluster.Object // by kind and name
	jobs    map[try]*batchv1.Job
	pods    map[try]corev1.Pod
	secrets map[string]map[string][]byte // by run; what the last attempt was told
	watches []chan try
	uids    int
	writes  int                     // creations and deletions that were asked for
	refuses *cluster.RefusedError   // what is said of every object, nil for none
	ever    map[string]map[int]bool // attempts that had a Job, by run
}

func newStage() *stage {
	return &stage{
		objects: make(map[string]cluster.Object), jobs: make(map[try]*batchv1.Job), pods: make(map[try]corev1.Pod),
		secrets: make(map[string]map[string][]byte), ever: make(map[string]map[int]bool),
	}
}

func of(o cluster.Object) try {
	attempt, _ := strconv.Atoi(o.GetLabels()[cluster.LabelAttempt]) // 0 is no attempt
	return try{o.GetLabels()[cluster.LabelRun], attempt}
}

// Create implements cluster.Creator.
func (s *stage) Create(ctx context.Context, o cluster.Object) error {
	if err := s.refusal(ctx); err != nil {
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
		s.secrets[of(o).run] = o.Data
	}
	return nil
}

// refusal counts a creation, and returns why no object is taken, if that is so. A cluster that refuses
// takes its time, so that what is said meanwhile is said before.
func (s *stage) refusal(ctx context.Context) error {
	s.mu.Lock()
	s.writes++
	no := s.refuses
	s.mu.Unlock()
	if no == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second):
		return no
	}
}

// schedule gives a job its pod, which waits for the scene.
func (s *stage) schedule(job *batchv1.Job) {
	t := of(job)
	s.jobs[t] = job.DeepCopy()
	if s.ever[t.run] == nil {
		s.ever[t.run] = make(map[int]bool)
	}
	s.ever[t.run][t.attempt] = true
	p := corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	p.Name, p.UID, p.CreationTimestamp = job.Name+"-0", types.UID("pod-of-"+string(job.UID)), metav1.Now()
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	s.pods[t] = p
	s.changed(t)
}

// Delete implements cluster.Deleter.
func (s *stage) Delete(_ context.Context, r cluster.Ref) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	t := try{r.Run, r.Attempt}
	maps.DeleteFunc(s.objects, func(_ string, o cluster.Object) bool { return of(o) == t })
	delete(s.jobs, t)
	delete(s.pods, t)
	s.changed(t)
	return nil
}

// Stop implements cluster.Stopper. Pods here have one role, which has ended.
func (s *stage) Stop(context.Context, cluster.Ref) error { return nil }

// Observe implements cluster.Observer.
func (s *stage) Observe(_ context.Context, r cluster.Ref) (cluster.Seen, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen(try{r.Run, r.Attempt})
	if seen.Job == nil || r.UID != "" && string(seen.Job.UID) != r.UID {
		return cluster.Seen{}, cluster.ErrNotFound
	}
	seen.Ref = r
	return seen, nil
}

// Labels implements cluster.Labeler.
func (*stage) Labels(context.Context, string, string, string) (map[string]string, error) {
	return nil, cluster.ErrNotFound
}

// Watch implements cluster.Observer.
func (s *stage) Watch(ctx context.Context, see func(cluster.Seen)) error {
	changes := make(chan try, 1000)
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

func (s *stage) changed(t try) {
	for _, w := range s.watches {
		w <- t
	}
}

func (s *stage) seen(t try) cluster.Seen {
	seen := cluster.Seen{Ref: cluster.Ref{Run: t.run, Attempt: t.attempt}}
	job, ok := s.jobs[t]
	if !ok {
		return seen
	}
	pod := s.pods[t]
	seen.Job, seen.Pods = job.DeepCopy(), []corev1.Pod{*pod.DeepCopy()}
	seen.Ref.Job, seen.Ref.Scope, seen.Ref.UID = job.Name, job.Namespace, string(job.UID)
	return seen
}

// play changes what is there of the attempt of a run that is on, and reports
// whether there is one.
func (s *stage) play(run string, a act) bool {
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

// begin has the benchmark of a pod begin.
func begin(_ *batchv1.Job, p *corev1.Pod) {
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	p.Status.Phase = corev1.PodRunning
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: cluster.ContainerCollect, Started: new(true), State: runs}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: cluster.ContainerBenchmark, Started: new(true), State: runs}}
}

// exit has the benchmark of a pod end with a code, and its job with it.
func exit(code int32) act {
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

// refuse has the cluster take no object any more, or take them again.
func (s *stage) refuse(with *cluster.RefusedError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses = with
}

// told returns what the pod of a run is told, by file.
func (s *stage) told(run string) map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.secrets[run]
}

// left returns what is in the cluster.
func (s *stage) left() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// asked returns how many creations and deletions were asked for so far.
func (s *stage) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// attempts returns how many attempts of a run had a job.
func (s *stage) attempts(run string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ever[run])
}
