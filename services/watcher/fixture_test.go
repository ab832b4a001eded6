package watcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/watcher"
)

// fakeCluster shows the snapshots that a test has set.
type fakeCluster struct {
	mu           sync.Mutex
	seen         map[cluster.Ref]cluster.Snapshot // by run, attempt and job
	watchers     []chan cluster.Ref               // one for each Watch
	err          error
	observeCalls int
	nodes        []corev1.Node
	annotations  []string // pod=value
	refusal      error    // of annotations
}

func newCluster() *fakeCluster { return &fakeCluster{seen: make(map[cluster.Ref]cluster.Snapshot)} }

func refWithoutUID(r cluster.Ref) cluster.Ref {
	return cluster.Ref{Run: r.Run, Attempt: r.Attempt, Job: r.Job}
}

// set sets the snapshot of an attempt, and wakes every Watch.
func (c *fakeCluster) set(r cluster.Ref, s cluster.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[refWithoutUID(r)] = s
	for _, w := range c.watchers {
		w <- refWithoutUID(r)
	}
}

func (c *fakeCluster) Observe(_ context.Context, r cluster.Ref) (cluster.Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.observeCalls++
	s := c.seen[refWithoutUID(r)]
	s.Ref = r
	switch {
	case c.err != nil:
		return cluster.Snapshot{}, c.err
	case s.Job != nil && r.UID != "" && string(s.Job.UID) != r.UID, s.Job == nil && len(s.Pods) == 0:
		return cluster.Snapshot{}, cluster.ErrNotFound
	}
	return s, nil
}

// Occupancy returns the pods of all snapshots.
func (c *fakeCluster) Occupancy(context.Context) (cluster.Occupancy, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := cluster.Occupancy{Nodes: c.nodes}
	for _, s := range c.seen {
		for _, p := range s.Pods {
			if cluster.Alive(p) {
				all.Pods = append(all.Pods, p)
			}
		}
	}
	return all, c.err
}

func (c *fakeCluster) Watch(ctx context.Context, see func(cluster.Snapshot)) error {
	changed := make(chan cluster.Ref, 10000)
	c.mu.Lock()
	for r := range c.seen {
		changed <- r
	}
	c.watchers = append(c.watchers, changed)
	c.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return nil
		case r := <-changed:
			c.mu.Lock()
			s := c.seen[r]
			c.mu.Unlock()
			s.Ref = r
			see(s)
		}
	}
}

// Annotate records the value. Snapshots do not change by it: a test sets them.
func (c *fakeCluster) Annotate(_ context.Context, p corev1.Pod, _, value string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refusal == nil && !slices.Contains(c.annotations, p.Name+"="+value) {
		c.annotations = append(c.annotations, p.Name+"="+value)
	}
	return c.refusal
}

func (c *fakeCluster) refuseAnnotations(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusal = err
}

// annotated returns pods with the values of their annotations, sorted.
func (c *fakeCluster) annotated() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.annotations)
	return c.annotations
}

func (c *fakeCluster) observeCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.observeCalls
}

func (c *fakeCluster) failWith(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// fixture is the store, the cluster and the topics, which outlive a watcher.
type fixture struct {
	t       *testing.T
	store   *storetest.Memory
	cluster *fakeCluster
	engines map[string]watcher.Engine // beside the default one

	mu              sync.Mutex
	published       []event.Event // without duplicates
	publishedIDs    map[string]bool
	duplicates      int
	docsListed      int
	cancelMarkReads int // one for each reconcile
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return &fixture{t: t, store: storetest.NewMemory(), cluster: newCluster(), publishedIDs: make(map[string]bool)}
}

// process is a process with a watcher in it. The test calls the watcher's handlers.
type process struct {
	*crashtest.Process

	fixture *fixture
	steps   map[string]service.Step
	stop    func()
}

// start starts a watcher that runs until it is stopped.
func (w *fixture) start(s watcher.Settings) *process { return w.startIn(crashtest.New(0, false), s) }

// startIn starts a watcher in a process that may die.
func (w *fixture) startIn(crashing *crashtest.Process, s watcher.Settings) *process {
	ctx, cancel := crashing.Context(w.t.Context())
	p := &process{Process: crashing, fixture: w, steps: make(map[string]service.Step)}
	var all sync.WaitGroup
	for _, part := range watcher.New(s, watcher.Deps{Bus: p.Bus(p), Store: countingStore{p.Store(w.store), w}, Cluster: w.cluster, Annotator: w.cluster, Engines: w.engines}) {
		all.Go(func() { _ = part(ctx) })
	}
	p.stop = func() { cancel(); all.Wait() }
	return p
}

// deliver passes an event to the process as a bus would: again until the process has handled it. It reports whether the process has.
func (p *process) deliver(ev event.Event) bool {
	p.fixture.t.Helper()
	m, err := event.Encode(ev)
	if err != nil {
		p.fixture.t.Fatal(err)
	}
	for range 50 {
		if _, err = p.steps[m.Topic].Handle(p.fixture.t.Context(), []event.Message{m}); err == nil {
			return true
		}
		if p.Dead() {
			return false
		}
		time.Sleep(time.Second)
	}
	return false
}

func (p *process) Consume(_ string, step service.Step) service.Runnable {
	p.steps[step.Topic] = step
	return func(ctx context.Context) error { <-ctx.Done(); return nil }
}

func (p *process) Publish(_ context.Context, evs ...event.Event) error {
	p.fixture.mu.Lock()
	defer p.fixture.mu.Unlock()
	for _, ev := range evs {
		if _, err := event.Encode(ev); err != nil {
			return err
		}
		if p.fixture.publishedIDs[ev.Head().ID] {
			p.fixture.duplicates++
			continue
		}
		p.fixture.publishedIDs[ev.Head().ID] = true
		p.fixture.published = append(p.fixture.published, ev)
	}
	return nil
}

// countingStore counts the reads of a watcher.
type countingStore struct {
	crashtest.Store

	fixture *fixture
}

func (s countingStore) Docs(ctx context.Context, kind store.Kind, after string, limit int) ([]store.Doc, error) {
	docs, err := s.Store.Docs(ctx, kind, after, limit)
	s.fixture.mu.Lock()
	defer s.fixture.mu.Unlock()
	s.fixture.docsListed += len(docs)
	return docs, err
}

func (s countingStore) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	if kind == store.KindCancel {
		s.fixture.mu.Lock()
		s.fixture.cancelMarkReads++
		s.fixture.mu.Unlock()
	}
	return s.Store.Doc(ctx, kind, key)
}

func (w *fixture) reconcileCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cancelMarkReads
}

func (w *fixture) listedCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.docsListed
}

// publishedLines returns all published events, one line each.
func (w *fixture) publishedLines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return eventLines(w.published)
}

// endLines returns the published ends of attempts.
func (w *fixture) endLines() []string {
	var ends []string
	for _, l := range w.publishedLines() {
		if l[:10] != "bai.status" {
			ends = append(ends, l)
		}
	}
	return ends
}

func (w *fixture) liveKeys() []string {
	w.t.Helper()
	docs, err := w.store.Docs(w.t.Context(), store.KindWatch, "live/", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	keys := []string{}
	for _, d := range docs {
		if d.Key[:5] == "live/" {
			keys = append(keys, d.Key)
		}
	}
	return keys
}

// putRun stores a run, as the gateway does.
func (w *fixture) putRun(r store.Run) {
	w.t.Helper()
	c := store.Change{Run: r.ID, Revision: r.Revision, Event: fmt.Sprint("e", r.Revision)}
	if err := w.store.PutRun(w.t.Context(), r, c); err != nil {
		w.t.Fatal(err)
	}
}

// cancel sets the cancel mark of a run, as the gateway does before it publishes the command.
func (w *fixture) cancel(run string) event.Command {
	w.t.Helper()
	if err := store.Create(w.t.Context(), w.store, store.KindCancel, run, struct{}{}); err != nil && !errors.Is(err, store.ErrExists) {
		w.t.Fatal(err)
	}
	return event.Command{Header: event.NewHeader("c", run, "pets", "ann", at(0).Time), Kind: event.CommandCancel}
}

func launchedRun(run string, retries int) event.Launched {
	h := event.NewHeader("launch "+run, run, "pets", "ann", at(0).Time)
	return event.Launched{Header: h, Cluster: "local", Scope: "default", Job: "bai-" + run + "-1", UID: "job-uid", Retries: retries}
}

func refOf(l event.Launched) cluster.Ref {
	return cluster.Ref{Run: l.Run, Attempt: l.Attempt, Job: l.Job}
}
