package executor_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// fakeCluster keeps the contract of a cluster, and runs nothing. Deleted objects are
// gone after deletionDelay.
type fakeCluster struct {
	mu            sync.Mutex
	deletionDelay time.Duration // time until deleted objects are gone
	// with this, deleted objects stay until they are deleted again, this long after
	// they should have gone; 0: they go
	redeleteAfter time.Duration
	stopDelay     time.Duration                // time until stopped pods have ended
	objects       map[string]cluster.Object    // by kind and name
	podsEndAt     map[string]time.Time         // time at which the stopped pods of a Job have ended
	goneAt        map[string]time.Time         // time at which an object being deleted is gone
	podsOf        map[string][]corev1.Pod      // pods of a Job, where a test sets them
	createCount   map[string]int               // number of creations, by kind and name
	writes        int                          // number of requests to create or delete
	maxJobs       int                          // maximum number of Jobs at one time
	refuse        func(o cluster.Object) error // error of a creation
	down          error                        // error of every call; nil: the cluster answers
	labels        map[string]map[string]string // labels of objects outside any run, by kind and name
}

// forever is longer than any test.
const forever = 1000 * time.Hour

func newCluster() *fakeCluster {
	return &fakeCluster{objects: make(map[string]cluster.Object), goneAt: make(map[string]time.Time), podsEndAt: make(map[string]time.Time), createCount: make(map[string]int)}
}

func objectKey(o cluster.Object) string {
	return o.GetObjectKind().GroupVersionKind().Kind + " " + o.GetName()
}

func (c *fakeCluster) removeDeleted() {
	for k, at := range c.goneAt {
		if !time.Now().Before(at) {
			delete(c.objects, k)
			delete(c.goneAt, k)
		}
	}
}

func (c *fakeCluster) Create(ctx context.Context, o cluster.Object) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeDeleted()
	c.writes++
	if c.down != nil {
		return c.down
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if c.refuse != nil {
		if err := c.refuse(o); err != nil {
			return err
		}
	}
	k := objectKey(o)
	if was, ok := c.objects[k]; ok {
		if strings.HasPrefix(k, "ConfigMap ") {
			o.SetUID(was.GetUID())
		}
		return cluster.ErrExists
	}
	c.createCount[k]++
	o.SetUID(types.UID(fmt.Sprintf("uid-%s-%d", o.GetName(), c.createCount[k])))
	c.objects[k] = o
	c.maxJobs = max(c.maxJobs, c.count("Job"))
	return nil
}

func (c *fakeCluster) Delete(ctx context.Context, r cluster.Ref) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeDeleted()
	c.writes++
	if c.down != nil {
		return c.down
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for k, o := range c.objects {
		if l := o.GetLabels(); l[cluster.LabelRun] == r.Run && l[cluster.LabelAttempt] == strconv.Itoa(r.Attempt) {
			at, deleting := c.goneAt[k]
			switch {
			case !deleting && c.redeleteAfter > 0:
				c.goneAt[k] = time.Now().Add(forever)
			case !deleting:
				c.goneAt[k] = time.Now().Add(c.deletionDelay)
			case c.redeleteAfter > 0 && time.Until(at) < forever-c.redeleteAfter:
				c.goneAt[k] = time.Now()
			}
		}
	}
	c.removeDeleted()
	return nil
}

func (c *fakeCluster) Observe(ctx context.Context, r cluster.Ref) (cluster.Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeDeleted()
	if c.down != nil {
		return cluster.Snapshot{}, c.down
	}
	if ctx.Err() != nil {
		return cluster.Snapshot{}, ctx.Err()
	}
	o, ok := c.objects["Job "+r.Job]
	if !ok {
		return cluster.Snapshot{}, cluster.ErrNotFound
	}
	job, _ := o.(*batchv1.Job)
	if pods, ok := c.podsOf[r.Job]; ok {
		return cluster.Snapshot{Ref: r, Job: job, Pods: pods}, nil
	}
	return cluster.Snapshot{Ref: r, Job: job, Pods: c.pods(r)}, nil
}

// pods returns the pods of an attempt with several Jobs. Each pod runs until its Job
// has ended, or until stopDelay after it was stopped.
func (c *fakeCluster) pods(r cluster.Ref) (pods []corev1.Pod) {
	for k, o := range c.objects {
		job, ok := o.(*batchv1.Job)
		if !ok || c.count("Job") < 2 || job.Labels[cluster.LabelRun] != r.Run {
			continue
		}
		phase := corev1.PodRunning
		if at, stopped := c.podsEndAt[k]; stopped && !time.Now().Before(at) || len(job.Status.Conditions) > 0 {
			phase = corev1.PodFailed
		}
		pods = append(pods, corev1.Pod{Status: corev1.PodStatus{Phase: phase}})
	}
	return pods
}

func (c *fakeCluster) Stop(ctx context.Context, r cluster.Ref) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes++
	if c.down != nil {
		return c.down
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for k, o := range c.objects {
		if _, stopping := c.podsEndAt[k]; !stopping && o.GetLabels()[cluster.LabelRun] == r.Run {
			c.podsEndAt[k] = time.Now().Add(c.stopDelay)
		}
	}
	return nil
}

// running reports whether a pod of an attempt is running.
func (c *fakeCluster) running(r cluster.Ref) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.pods(r), cluster.Alive)
}

func (c *fakeCluster) Labels(_ context.Context, kind, _, name string) (map[string]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	has, ok := c.labels[kind+" "+name]
	if !ok {
		return nil, cluster.ErrNotFound
	}
	return has, nil
}

// endJob sets a condition of a Job that ends it.
func (c *fakeCluster) endJob(name string, t batchv1.JobConditionType) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if job, ok := c.objects["Job "+name].(*batchv1.Job); ok {
		job = job.DeepCopy()
		job.Status.Conditions = []batchv1.JobCondition{{Type: t, Status: corev1.ConditionTrue}}
		c.objects["Job "+name] = job
	}
}

func (c *fakeCluster) count(kind string) int {
	n := 0
	for k := range c.objects {
		if len(k) > len(kind) && k[:len(kind)] == kind {
			n++
		}
	}
	return n
}

// object returns the object with a kind and name.
func (c *fakeCluster) object(key string) cluster.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.objects[key]
}

// objectKeys returns the kinds and names of all objects.
func (c *fakeCluster) objectKeys() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeDeleted()
	return slices.Sorted(maps.Keys(c.objects))
}

// failWith sets the error of every call, nil for none.
func (c *fakeCluster) failWith(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = err
}

func (c *fakeCluster) writeCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

// broker is a log of messages by topic that outlives processes. The consumers of a
// group continue after the last commit, however often they were killed.
type broker struct {
	mu          sync.Mutex
	topics      map[string][]event.Message
	committed   map[string]int // number of committed messages, by group
	publishedCh chan struct{}  // closed when a message is published
	redeliver   bool           // every message is handled twice
}

func newBroker() *broker {
	return &broker{topics: make(map[string][]event.Message), committed: make(map[string]int), publishedCh: make(chan struct{})}
}

func (b *broker) Publish(_ context.Context, evs ...event.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ev := range evs {
		m, err := event.Encode(ev)
		if err != nil {
			return err
		}
		b.topics[m.Topic] = append(b.topics[m.Topic], m)
	}
	close(b.publishedCh)
	b.publishedCh = make(chan struct{})
	return nil
}

// Consume passes one message at a time to step, publishes the returned events, then
// commits.
func (b *broker) Consume(group string, step service.Step) service.Runnable {
	return func(ctx context.Context) error {
		b.mu.Lock()
		at := b.committed[group]
		b.mu.Unlock()
		for ctx.Err() == nil {
			m, published, ok := b.message(step.Topic, at)
			if !ok {
				select {
				case <-ctx.Done():
				case <-published:
				}
				continue
			}
			if err := b.handle(ctx, step, m); err != nil {
				control.Sleep(ctx, 100*time.Millisecond)
				continue
			}
			at++
			b.mu.Lock()
			b.committed[group] = max(b.committed[group], at)
			b.mu.Unlock()
		}
		return nil
	}
}

// message returns the message at an offset, or a channel that is closed when there may
// be one.
func (b *broker) message(topic string, at int) (event.Message, <-chan struct{}, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at >= len(b.topics[topic]) {
		return event.Message{}, b.publishedCh, false
	}
	return b.topics[topic][at], nil, true
}

func (b *broker) handle(ctx context.Context, step service.Step, m event.Message) error {
	times := 1
	if b.redeliver {
		times = 2
	}
	for range times {
		out, err := step.Handle(ctx, []event.Message{m})
		if err != nil {
			return err
		}
		if err := b.Publish(ctx, out...); err != nil {
			return err
		}
	}
	return nil
}

// rewind makes every consumer start at offset 0 the next time.
func (b *broker) rewind() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.committed)
}

// published returns every event of a type, without duplicates.
func published[T event.Event](t *testing.T, b *broker) []T {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var zero T
	var evs []T
	ids := make(map[string]bool)
	for _, m := range b.topics[zero.Topic()] {
		ev, err := event.Decode[T](m)
		if err != nil {
			t.Fatal(err)
		}
		if !ids[m.ID] {
			ids[m.ID] = true
			evs = append(evs, ev)
		}
	}
	return evs
}

// errStoreDown is the error of a store that is down.
var errStoreDown = errors.New("the store is away")

// flakyStore is the fixture's store as executors use it: it may be down or slow.
type flakyStore struct {
	*storetest.Memory

	fixture *fixture
}

func (s flakyStore) reachable() error {
	if s.fixture.storeDown.Load() {
		return errStoreDown
	}
	return nil
}

func (s flakyStore) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	if err := s.reachable(); err != nil {
		return store.Doc{}, err
	}
	if s.fixture.readDelay != nil {
		control.Sleep(ctx, s.fixture.readDelay(kind))
	}
	return s.Memory.Doc(ctx, kind, key)
}

func (s flakyStore) Docs(ctx context.Context, kind store.Kind, after string, limit int) ([]store.Doc, error) {
	if err := s.reachable(); err != nil {
		return nil, err
	}
	s.fixture.docsListed.Add(int64(limit))
	return s.Memory.Docs(ctx, kind, after, limit)
}

func (s flakyStore) CreateDoc(ctx context.Context, d store.Doc) error {
	if err := s.reachable(); err != nil {
		return err
	}
	return s.Memory.CreateDoc(ctx, d)
}

func (s flakyStore) ReplaceDoc(ctx context.Context, d store.Doc) (int64, error) {
	if err := s.reachable(); err != nil {
		return 0, err
	}
	return s.Memory.ReplaceDoc(ctx, d)
}

func (s flakyStore) Run(ctx context.Context, id string) (store.Run, error) {
	if err := s.reachable(); err != nil {
		return store.Run{}, err
	}
	return s.Memory.Run(ctx, id)
}

func (s flakyStore) DeleteDoc(ctx context.Context, d store.Doc) error {
	if err := s.reachable(); err != nil {
		return err
	}
	return s.Memory.DeleteDoc(ctx, d)
}
