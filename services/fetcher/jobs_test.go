package fetcher_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/fetcher"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// template is what Jobs are made from.
func template() *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "fetch", Image: "fetcher:1", Args: []string{"-config", "/etc/bai/fetcher.toml"},
		}}}}},
	}
}

// fakeJobs is a cluster whose Jobs do their tasks in this process.
type fakeJobs struct {
	fixture   *fixture
	settings  fetcher.Settings
	refuse    error         // what Create says
	killFirst chan struct{} // the first Job does nothing, and breaks once this is closed; nil: it works
	running   sync.WaitGroup

	mu           sync.Mutex
	createdNames []string // names of all that were ever created
	all          map[string]*fakeJob
}

type fakeJob struct {
	job    *batchv1.Job
	cancel context.CancelFunc
	ended  bool
	err    error
}

func newFakeJobs(t *testing.T, w *fixture) *fakeJobs {
	t.Helper()
	j := &fakeJobs{fixture: w, settings: quick(), all: make(map[string]*fakeJob)}
	t.Cleanup(func() {
		j.mu.Lock()
		for _, w := range j.all {
			w.cancel()
		}
		j.mu.Unlock()
		j.running.Wait()
	})
	w.jobs = j
	return j
}

// Create implements fetcher.Jobs.
func (j *fakeJobs) Create(ctx context.Context, o cluster.Object) error {
	job, ok := o.(*batchv1.Job)
	if !ok {
		return fmt.Errorf("a %T", o)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.refuse != nil {
		return j.refuse
	}
	if _, exists := j.all[job.Name]; exists {
		return cluster.ErrExists
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &fakeJob{job: job, cancel: cancel}
	j.all[job.Name], j.createdNames = w, append(j.createdNames, job.Name)
	args, doomed := job.Spec.Template.Spec.Containers[0].Args, j.killFirst != nil && len(j.createdNames) == 1
	j.running.Go(func() {
		err := j.runTask(ctx, args[len(args)-1], doomed)
		j.mu.Lock()
		defer j.mu.Unlock()
		w.ended, w.err = true, err
	})
	return nil
}

func (j *fakeJobs) runTask(ctx context.Context, key string, doomed bool) error {
	if doomed {
		select {
		case <-j.killFirst:
			return errors.New("killed")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fetcher.DoTask(ctx, j.settings, fetcher.Deps{Store: j.fixture.docs, Objects: j.fixture.objectStore, Log: zap.NewNop()}, key)
}

// Delete implements fetcher.Jobs.
func (j *fakeJobs) Delete(_ context.Context, r cluster.Ref) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if w, ok := j.all[r.Job]; ok {
		w.cancel()
		delete(j.all, r.Job)
	}
	return nil
}

// Observe implements fetcher.Jobs.
func (j *fakeJobs) Observe(_ context.Context, r cluster.Ref) (cluster.Snapshot, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	w, ok := j.all[r.Job]
	if !ok {
		return cluster.Snapshot{}, cluster.ErrNotFound
	}
	seen := cluster.Snapshot{Ref: r, Job: w.job.DeepCopy()}
	switch {
	case w.ended && w.err == nil:
		seen.Job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	case w.ended:
		seen.Job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Message: w.err.Error()}}
	}
	return seen, nil
}

func (j *fakeJobs) createdCount() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.createdNames)
}

func (j *fakeJobs) remaining() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.all)
}

func TestAJobBringsASourceForAllWhoWantIt(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	j := newFakeJobs(t, w)
	dogs := bytesOf(1, 3<<20)
	src := s.put("/dogs", page{content: dogs, gated: true})
	ps := []*process{w.start(t, quick()), w.start(t, quick())}
	for i := range 10 {
		ps[i%2].PublishAndWait(runWith(fmt.Sprint("r", i), data{src: src}))
	}
	eventually(t, "no progress is told", func() bool {
		for _, line := range append(ps[0].statusMessages(), ps[1].statusMessages()...) {
			if strings.Contains(line, "1.5 MiB of 3 MiB") {
				return true
			}
		}
		return false
	})
	s.release()
	for i := range 10 {
		run := fmt.Sprint("r", i)
		eventually(t, run+" is not fetched", func() bool { return !open(t, w, run) })
	}
	if j.createdCount() != 1 || s.requestCount("/dogs") != 1 {
		t.Errorf("%d jobs, %d transfers", j.createdCount(), s.requestCount("/dogs"))
	}
	ps[0].PublishAndWait(runWith("again", data{src: src, sha256: sha256Of(dogs)}))
	if got := ps[0].waitFetched(t, "again"); !bytes.Equal(dogs, w.content(t, got[0])) {
		t.Error("something else was fetched")
	}
	w.waitClean(t)
	eventually(t, "a job is left", func() bool { return j.remaining() == 0 })
}

func TestWhatASourceIsToBlameForIsFoundOutByAJob(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	j := newFakeJobs(t, w)
	p := w.start(t, quick())
	p.PublishAndWait(runWith("r1", data{src: s.URL + "/nothing"}))
	if got := p.waitFinished(t, "r1"); got.Reason != event.FetchFailed || !strings.Contains(got.Message, "404") {
		t.Errorf("finished %s: %s", got.Reason, got.Message)
	}
	w.waitClean(t)
	eventually(t, "a job is left", func() bool { return j.remaining() == 0 })
}

func TestCancelEndsTheJobOfATransfer(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	j := newFakeJobs(t, w)
	p := w.start(t, quick())
	p.PublishAndWait(runWith("r1", data{src: s.put("/dogs", page{content: bytesOf(1, 4<<20), gated: true})}))
	eventually(t, "nothing moves", func() bool { return s.requestCount("/dogs") == 1 })
	w.cancel(t, p, "r1")
	if got := p.waitFinished(t, "r1"); got.Outcome != event.Canceled {
		t.Errorf("finished %s", got.Outcome)
	}
	eventually(t, "a job is left", func() bool { return j.remaining() == 0 })
	w.waitClean(t)
}

func TestAJobGoesOnWhenItsFetcherIsReplaced(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	j := newFakeJobs(t, w)
	dogs := bytesOf(1, 4<<20)
	src := s.put("/dogs", page{content: dogs, gated: true})
	first := w.start(t, quick())
	first.PublishAndWait(runWith("r1", data{src: src}))
	eventually(t, "nothing moves", func() bool { return s.requestCount("/dogs") == 1 })
	first.stop()
	if j.remaining() != 1 {
		t.Fatalf("%d jobs are left", j.remaining())
	}
	second := w.start(t, quick())
	s.release()
	if !bytes.Equal(dogs, w.content(t, second.waitFetched(t, "r1")[0])) {
		t.Error("something else was fetched")
	}
	if j.createdCount() != 1 || s.requestCount("/dogs") != 1 {
		t.Errorf("%d jobs, %d transfers", j.createdCount(), s.requestCount("/dogs"))
	}
	w.waitClean(t)
}

func TestAJobThatBreaksOrIsGoneIsReplaced(t *testing.T) {
	for name, end := range map[string]func(j *fakeJobs){
		"it breaks": func(j *fakeJobs) { close(j.killFirst) },
		"it is gone": func(j *fakeJobs) {
			j.mu.Lock()
			defer j.mu.Unlock()
			for _, w := range j.all {
				w.cancel()
			}
			clear(j.all)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := newFixture(t), newSite(t)
			j := newFakeJobs(t, w)
			j.killFirst = make(chan struct{})
			p := w.start(t, quick())
			p.PublishAndWait(runWith("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})}))
			eventually(t, "there is no job", func() bool { return j.createdCount() == 1 })
			end(j)
			if string(w.content(t, p.waitFetched(t, "r1")[0])) != "dogs" {
				t.Error("something else was fetched")
			}
			if j.createdCount() != 2 {
				t.Errorf("%d jobs", j.createdCount())
			}
			w.waitClean(t)
		})
	}
}

func TestAJobThatNobodyWaitsForAndNobodyLooksAfterIsEnded(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	j := newFakeJobs(t, w)
	p := w.start(t, quick())
	p.PublishAndWait(runWith("r1", data{src: s.put("/dogs", page{content: bytesOf(1, 4<<20), gated: true})}))
	eventually(t, "nothing moves", func() bool { return s.requestCount("/dogs") == 1 })
	p.stop() // it dies, and the run is canceled and forgotten before another comes
	if err := w.docs.DeleteDoc(t.Context(), store.Doc{Kind: store.KindOrder, Key: "open/r1"}); err != nil {
		t.Fatal(err)
	}
	stock, err := fetcher.NewDatasetCache(quick(), fetcher.Deps{Store: w.docs, Objects: w.objects, Log: zap.NewNop(), Jobs: j, JobTemplate: template()})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job goes on", func() bool {
		if err := stock.Sweep(t.Context()); err != nil && !errors.Is(err, store.ErrHeld) {
			t.Fatal(err)
		}
		return j.remaining() == 0
	})
	w.waitClean(t)
}

func TestAnotherFetcherEndsAJobThatNobodyWaitsForSoon(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	j := newFakeJobs(t, w)
	p := w.start(t, quick())
	p.PublishAndWait(runWith("r1", data{src: s.put("/dogs", page{content: bytesOf(1, 4<<20), gated: true})}))
	eventually(t, "nothing moves", func() bool { return s.requestCount("/dogs") == 1 })
	p.stop()
	if err := w.docs.DeleteDoc(t.Context(), store.Doc{Kind: store.KindOrder, Key: "open/r1"}); err != nil {
		t.Fatal(err)
	}
	w.start(t, quick()) // it sweeps in ten minutes
	eventually(t, "the job goes on", func() bool { return j.remaining() == 0 })
	w.waitClean(t)
}

func TestAJobThatIsRefusedIsTriedAgain(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	j := newFakeJobs(t, w)
	j.refuse = &cluster.RefusedError{Object: "Job x", Message: "exceeded quota"}
	p := w.start(t, quick())
	p.PublishAndWait(runWith("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})}))
	eventually(t, "nothing is waited for", func() bool { return open(t, w, "r1") })
	j.mu.Lock()
	j.refuse = nil
	j.mu.Unlock()
	p.waitFetched(t, "r1")
	w.waitClean(t)
}

// fullStore is a store of objects that is full until it is told to have space.
type fullStore struct {
	fetcher.Objects

	mu   sync.Mutex
	full bool
}

// Space implements fetcher.Objects.
func (c *fullStore) Space(context.Context) (store.Space, error) {
	return store.Space{Free: 3, Total: 1 << 40}, nil
}

// Put implements fetcher.Objects.
func (c *fullStore) Put(ctx context.Context, key string, size int64, withMD5 bool, fill func(w io.Writer) error) (store.Object, error) {
	c.mu.Lock()
	full := c.full
	c.mu.Unlock()
	if full {
		return store.Object{}, fmt.Errorf("write: %w", syscall.ENOSPC)
	}
	return c.Objects.Put(ctx, key, size, withMD5, fill)
}

func TestThatAJobHasNoSpaceIsSaid(t *testing.T) {
	w, s := newFixture(t), newSite(t)
	disk := &fullStore{Objects: w.objects, full: true}
	w.objectStore = disk
	newFakeJobs(t, w)
	p := w.start(t, quick())
	p.PublishAndWait(runWith("r1", data{src: s.put("/dogs", page{content: []byte("dogs")})}))
	eventually(t, "nobody says that there is no space", func() bool {
		return slices.ContainsFunc(p.statusMessages(), func(line string) bool { return strings.Contains(line, "the object store is full") })
	})
	disk.mu.Lock()
	disk.full = false
	disk.mu.Unlock()
	p.waitFetched(t, "r1")
	w.waitClean(t)
}

func TestAJobIsTheTemplateWithATask(t *testing.T) {
	const key = "0123456789abcdef0123456789abcdef"
	from := *template()
	from.Labels = map[string]string{"app": "fetch"}
	j := fetcher.JobOf(from, key, fetcher.Task{Number: 7}, "s3://cats", time.Hour)
	got := []string{
		j.APIVersion, j.Kind, j.Namespace, j.Name, j.Labels["app"], j.Labels[cluster.LabelRun], j.Labels[cluster.LabelAttempt],
		j.Spec.Template.Labels[cluster.LabelRun], string(j.Spec.Template.Spec.RestartPolicy), fmt.Sprint(*j.Spec.BackoffLimit, " ", *j.Spec.ActiveDeadlineSeconds),
		strings.Join(j.Spec.Template.Spec.Containers[0].Args, " "),
	}
	want := []string{
		"batch/v1", "Job", "platform", "bai-fetch-0123456789abcdef0123456789-7", "fetch", "fetch-0123456789abcdef0123456789", "7",
		"fetch-0123456789abcdef0123456789", "Never", "0 3600", "-config /etc/bai/fetcher.toml -transfer " + key,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(from.Labels) != 1 || len(from.Spec.Template.Spec.Containers[0].Args) != 2 {
		t.Error("the template has changed")
	}
	bare := *template()
	bare.Namespace = ""
	two := *template()
	two.Spec.Template.Spec.Containers = append(two.Spec.Template.Spec.Containers, corev1.Container{})
	for want, j := range map[string]batchv1.Job{"metadata.namespace: is needed": bare, "spec.template.spec.containers: has 2, want the fetcher alone": two} {
		if err := fetcher.CheckJob(j); err == nil || err.Error() != want {
			t.Errorf("CheckJob: %v, want %s", err, want)
		}
	}
}

func TestLookTellsHowAJobStands(t *testing.T) {
	with := func(kind batchv1.JobConditionType, message string) *batchv1.Job {
		j := template()
		j.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: "R", Message: message}}
		return j
	}
	words := corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "no store"},
	}}}}}
	broken := func(pods ...corev1.Pod) cluster.Snapshot {
		j := template()
		j.Name, j.Status.Active = "bai-fetch-x-1", int32(len(pods))
		return cluster.Snapshot{Job: j, Pods: pods}
	}
	pod := func(status corev1.PodStatus) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bai-fetch-x-1-abcde", Namespace: "platform"}, Status: status}
	}
	container := func(state corev1.ContainerState) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "fetch", State: state}}
	}
	waitingPod := func(reason, message string) corev1.Pod {
		return pod(corev1.PodStatus{
			Phase:             corev1.PodPending,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
			ContainerStatuses: container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}),
		})
	}
	noNode := pod(corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient memory."},
	}})
	noImage := waitingPod("ImagePullBackOff", `Back-off pulling image "fetcher:1"`)
	noSecret := waitingPod("CreateContainerConfigError", `secret "fetcher" not found`)
	runs := pod(corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: container(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})})
	one, yes := int32(1), true
	ready, queued := broken(), broken()
	ready.Job.Status.Ready, queued.Job.Spec.Suspend = &one, &yes
	for name, tt := range map[string]struct {
		seen  cluster.Snapshot
		long  time.Duration
		stage fetcher.JobPhase
		why   string
	}{
		"one that has not started has a moment for it":             {broken(noImage), 110 * time.Second, fetcher.JobRunning, ""},
		"then it is said that its image cannot be had":             {broken(noImage), 2 * time.Minute, fetcher.JobRunning, `its fetch job does not start: ImagePullBackOff: Back-off pulling image "fetcher:1"`},
		"or that no node takes it":                                 {broken(noNode), 2 * time.Minute, fetcher.JobRunning, "its fetch job does not start: Unschedulable: 0/3 nodes are available: 3 Insufficient memory."},
		"or that a secret is missing":                              {broken(noSecret), 9 * time.Minute, fetcher.JobRunning, `its fetch job does not start: CreateContainerConfigError: secret "fetcher" not found`},
		"or that it has no pod":                                    {broken(), 2 * time.Minute, fetcher.JobRunning, "its fetch job does not start: it has no pod; kubectl describe job bai-fetch-x-1 --namespace platform says why"},
		"or at least which pod it is":                              {broken(waitingPod("ContainerCreating", "")), 2 * time.Minute, fetcher.JobRunning, "its fetch job does not start: pod bai-fetch-x-1-abcde is being prepared; kubectl describe pod bai-fetch-x-1-abcde --namespace platform says what is missing"},
		"and after ten minutes it is given up":                     {broken(noNode), 10 * time.Minute, fetcher.JobFailed, "its fetch job does not start: Unschedulable: 0/3 nodes are available: 3 Insufficient memory.; given up after 10m0s"},
		"one that has started may take its time":                   {broken(runs), 24 * time.Hour, fetcher.JobRunning, ""},
		"also where its pods were not looked at, for one is ready": {ready, 24 * time.Hour, fetcher.JobRunning, ""},
		"one that waits in a queue of the cluster's may wait":      {queued, 24 * time.Hour, fetcher.JobRunning, "its fetch job does not start: a queue of the cluster's has not let it begin"},
		"there is none":                                            {cluster.Snapshot{}, 0, fetcher.JobGone, ""},
		"it works":                                                 {cluster.Snapshot{Job: template()}, 0, fetcher.JobRunning, ""},
		"it suspends nothing by itself":                            {cluster.Snapshot{Job: with(batchv1.JobSuspended, "")}, 0, fetcher.JobRunning, ""},
		"it has worked":                                            {cluster.Snapshot{Job: with(batchv1.JobComplete, "")}, time.Hour, fetcher.JobSucceeded, ""},
		"it failed without words":                                  {cluster.Snapshot{Job: with(batchv1.JobFailed, "late")}, 0, fetcher.JobFailed, "R: late"},
		"it failed with last words":                                {cluster.Snapshot{Job: with(batchv1.JobFailed, "late"), Pods: []corev1.Pod{words}}, 0, fetcher.JobFailed, "no store"},
	} {
		if stage, why := fetcher.JobStatus(tt.seen, tt.long); stage != tt.stage || why != tt.why {
			t.Errorf("%s: %v %q, want %v %q", name, stage, why, tt.stage, tt.why)
		}
	}
}
