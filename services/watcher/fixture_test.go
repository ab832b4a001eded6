package watcher_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/watcher"
)

// fakeCluster shows what a test says is there.
type fakeCluster struct {
	mu           sync.Mutex
	seen         map[cluster.Ref]cluster.Snapshot // by run, attempt and job
	watchers     []chan cluster.Ref               // of each who watches
	err          error
	observeCalls int
}

func newCluster() *fakeCluster { return &fakeCluster{seen: make(map[cluster.Ref]cluster.Snapshot)} }

func refWithoutUID(r cluster.Ref) cluster.Ref {
	return cluster.Ref{Run: r.Run, Attempt: r.Attempt, Job: r.Job}
}

// set sets what is there of an attempt, and tells who watches.
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

// errKilled is what a process that was killed hears of everything.
var errKilled = errors.New("killed")

// fixture is all that outlives a watcher.
type fixture struct {
	t       *testing.T
	store   *storetest.Memory
	cluster *fakeCluster

	mu              sync.Mutex
	published       []event.Event // duplicates left out
	publishedIDs    map[string]bool
	duplicates      int
	docsListed      int // documents listed
	cancelMarkReads int // times that a run's cancel mark was looked for, once for each look
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return &fixture{t: t, store: storetest.NewMemory(), cluster: newCluster(), publishedIDs: make(map[string]bool)}
}

// process is one process with a watcher in it, which is killed at its n-th
// effect, before that happens or right after. Its handlers are called by the
// test.
type process struct {
	*storetest.Memory

	fixture *fixture
	steps   map[string]service.Step
	stop    func()

	mu     sync.Mutex
	effect int
	killAt int // 0: never
	after  bool
	killed bool
	kill   context.CancelFunc
}

func (w *fixture) start(s watcher.Settings, killAt int, after bool) *process {
	ctx, cancel := context.WithCancel(w.t.Context())
	p := &process{Memory: w.store, fixture: w, steps: make(map[string]service.Step), killAt: killAt, after: after, kill: cancel}
	var all sync.WaitGroup
	for _, part := range watcher.New(s, watcher.Deps{Bus: p, Store: p, Cluster: w.cluster}) {
		all.Go(func() { _ = part(ctx) })
	}
	p.stop = func() { cancel(); all.Wait() }
	return p
}

// deliver hands an event to the process as a bus would: again until it is done
// with it. It reports whether it was.
func (p *process) deliver(ev event.Event) bool {
	p.fixture.t.Helper()
	m, err := event.Encode(ev)
	if err != nil {
		p.fixture.t.Fatal(err)
	}
	for range 50 {
		out, err := p.steps[m.Topic].Handle(p.fixture.t.Context(), []event.Message{m})
		if err == nil {
			err = p.Publish(p.fixture.t.Context(), out...)
		}
		if err == nil || errors.Is(err, errKilled) {
			return err == nil
		}
		time.Sleep(time.Second)
	}
	return false
}

func (p *process) perform(do func() error) error {
	p.mu.Lock()
	if p.killed {
		p.mu.Unlock()
		return errKilled
	}
	p.effect++
	hit := p.killAt > 0 && p.effect == p.killAt
	p.killed = hit
	p.mu.Unlock()
	if hit && !p.after {
		p.kill()
		return errKilled
	}
	err := do()
	if hit {
		p.kill()
		return errKilled
	}
	return err
}

func (p *process) effects() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.effect
}

func (p *process) Consume(_ string, step service.Step) service.Runnable {
	p.steps[step.Topic] = step
	return func(ctx context.Context) error { <-ctx.Done(); return nil }
}

func (p *process) Publish(_ context.Context, evs ...event.Event) error {
	if len(evs) == 0 {
		return nil
	}
	return p.perform(func() error {
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
	})
}

func (p *process) CreateDoc(ctx context.Context, d store.Doc) error {
	return p.perform(func() error { return p.Memory.CreateDoc(ctx, d) })
}

func (p *process) DeleteDoc(ctx context.Context, d store.Doc) error {
	return p.perform(func() error { return p.Memory.DeleteDoc(ctx, d) })
}

func (p *process) Docs(ctx context.Context, kind store.Kind, after string, limit int) ([]store.Doc, error) {
	docs, err := p.Memory.Docs(ctx, kind, after, limit)
	p.fixture.mu.Lock()
	defer p.fixture.mu.Unlock()
	p.fixture.docsListed += len(docs)
	return docs, err
}

func (p *process) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	if kind == store.KindCancel {
		p.fixture.mu.Lock()
		p.fixture.cancelMarkReads++
		p.fixture.mu.Unlock()
	}
	return p.Memory.Doc(ctx, kind, key)
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

// publishedLines returns what was said, one line each.
func (w *fixture) publishedLines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return eventLines(w.published)
}

// endLines returns what was said of the ends of attempts.
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

// putRun has the run known as it is, as the gateway does.
func (w *fixture) putRun(r store.Run) {
	w.t.Helper()
	c := store.Change{Run: r.ID, Revision: r.Revision, Event: fmt.Sprint("e", r.Revision)}
	if err := w.store.PutRun(w.t.Context(), r, c); err != nil {
		w.t.Fatal(err)
	}
}

// cancel sets the mark of a run, as the gateway does before it says so.
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
