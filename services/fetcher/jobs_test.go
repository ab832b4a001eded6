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

	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/fetcher/download"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// template returns the template of Jobs.
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
	settings  dataset.Settings
	refuse    error         // error of Create
	killFirst chan struct{} // if set, the first Job does no work and fails once this is closed
	running   sync.WaitGroup

	mu           sync.Mutex
	createdNames []string // names of all Jobs that were ever created
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

// Create implements download.Jobs.
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
	return download.DoTask(ctx, j.settings, dataset.Deps{Store: j.fixture.docs, Objects: j.fixture.objectStore, Log: zap.NewNop()}, key)
}

// Delete implements download.Jobs.
func (j *fakeJobs) Delete(_ context.Context, r cluster.Ref) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if w, ok := j.all[r.Job]; ok {
		w.cancel()
		delete(j.all, r.Job)
	}
	return nil
}

// Observe implements download.Jobs.
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
	p.stop() // it crashes, and the run is canceled and its order closed before another process starts
	if err := w.docs.DeleteDoc(t.Context(), store.Doc{Kind: store.KindOrder, Key: "open/r1"}); err != nil {
		t.Fatal(err)
	}
	deps := dataset.Deps{Store: w.docs, Objects: w.objects, Log: zap.NewNop()}
	supervisor := download.NewSupervisor(quick(), deps, w.cache(t, quick()), j, template())
	eventually(t, "the job goes on", func() bool {
		if err := supervisor.DeleteOrphans(t.Context()); err != nil {
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
	w.start(t, quick()) // its first sweep is after ten minutes
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

// fullStore is an object store that is full until it is given space.
type fullStore struct {
	dataset.Objects

	mu   sync.Mutex
	full bool
}

// Space implements dataset.Objects.
func (c *fullStore) Space(context.Context) (store.Space, error) {
	return store.Space{Free: 3, Total: 1 << 40}, nil
}

// Put implements dataset.Objects.
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
