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
	mu      sync.Mutex
	seen    map[cluster.Ref]cluster.Seen // by run, attempt and job
	watches []chan cluster.Ref           // of each who watches
	away    error
	looks   int
}

func newCluster() *fakeCluster { return &fakeCluster{seen: make(map[cluster.Ref]cluster.Seen)} }

func plain(r cluster.Ref) cluster.Ref { return cluster.Ref{Run: r.Run, Attempt: r.Attempt, Job: r.Job} }

// is sets what is there of an attempt, and tells who watches.
func (c *fakeCluster) is(r cluster.Ref, s cluster.Seen) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[plain(r)] = s
	for _, w := range c.watches {
		w <- plain(r)
	}
}

func (c *fakeCluster) Observe(_ context.Context, r cluster.Ref) (cluster.Seen, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	s := c.seen[plain(r)]
	s.Ref = r
	switch {
	case c.away != nil:
		return cluster.Seen{}, c.away
	case s.Job != nil && r.UID != "" && string(s.Job.UID) != r.UID, s.Job == nil && len(s.Pods) == 0:
		return cluster.Seen{}, cluster.ErrNotFound
	}
	return s, nil
}

func (c *fakeCluster) Watch(ctx context.Context, see func(cluster.Seen)) error {
	changed := make(chan cluster.Ref, 10000)
	c.mu.Lock()
	for r := range c.seen {
		changed <- r
	}
	c.watches = append(c.watches, changed)
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

func (c *fakeCluster) looked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looks
}

func (c *fakeCluster) goes(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = err
}

// errDead is what a process that was killed hears of everything.
var errDead = errors.New("killed")

// world is all that outlives a watcher.
type world struct {
	t       *testing.T
	store   *storetest.Memory
	cluster *fakeCluster

	mu   sync.Mutex
	said []event.Event // duplicates left out
	ids  map[string]bool
	dups int
	docs int // documents listed
	mark int // times that a run's cancel mark was looked for, once for each look
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t: t, store: storetest.NewMemory(), cluster: newCluster(), ids: make(map[string]bool)}
}

// process is one process with a watcher in it, which is killed at its n-th
// effect, before that happens or right after. Its handlers are called by the
// test.
type process struct {
	*storetest.Memory

	world *world
	steps map[string]service.Step
	stop  func()

	mu     sync.Mutex
	effect int
	killAt int // 0: never
	after  bool
	dead   bool
	kill   context.CancelFunc
}

func (w *world) start(s watcher.Settings, killAt int, after bool) *process {
	ctx, cancel := context.WithCancel(w.t.Context())
	p := &process{Memory: w.store, world: w, steps: make(map[string]service.Step), killAt: killAt, after: after, kill: cancel}
	var all sync.WaitGroup
	for _, part := range watcher.New(s, watcher.Deps{Bus: p, Store: p, Cluster: w.cluster}) {
		all.Go(func() { _ = part(ctx) })
	}
	p.stop = func() { cancel(); all.Wait() }
	return p
}

// hear hands an event to the process as a bus would: again until it is done
// with it. It reports whether it was.
func (p *process) hear(ev event.Event) bool {
	p.world.t.Helper()
	m, err := event.Encode(ev)
	if err != nil {
		p.world.t.Fatal(err)
	}
	for range 50 {
		out, err := p.steps[m.Topic].Handle(p.world.t.Context(), []event.Message{m})
		if err == nil {
			err = p.Publish(p.world.t.Context(), out...)
		}
		if err == nil || errors.Is(err, errDead) {
			return err == nil
		}
		time.Sleep(time.Second)
	}
	return false
}

func (p *process) act(do func() error) error {
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return errDead
	}
	p.effect++
	hit := p.killAt > 0 && p.effect == p.killAt
	p.dead = hit
	p.mu.Unlock()
	if hit && !p.after {
		p.kill()
		return errDead
	}
	err := do()
	if hit {
		p.kill()
		return errDead
	}
	return err
}

func (p *process) effects() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.effect
}

func (p *process) Consume(_ string, step service.Step) service.Part {
	p.steps[step.Topic] = step
	return func(ctx context.Context) error { <-ctx.Done(); return nil }
}

func (p *process) Publish(_ context.Context, evs ...event.Event) error {
	if len(evs) == 0 {
		return nil
	}
	return p.act(func() error {
		p.world.mu.Lock()
		defer p.world.mu.Unlock()
		for _, ev := range evs {
			if _, err := event.Encode(ev); err != nil {
				return err
			}
			if p.world.ids[ev.Head().ID] {
				p.world.dups++
				continue
			}
			p.world.ids[ev.Head().ID] = true
			p.world.said = append(p.world.said, ev)
		}
		return nil
	})
}

func (p *process) CreateDoc(ctx context.Context, d store.Doc) error {
	return p.act(func() error { return p.Memory.CreateDoc(ctx, d) })
}

func (p *process) DeleteDoc(ctx context.Context, d store.Doc) error {
	return p.act(func() error { return p.Memory.DeleteDoc(ctx, d) })
}

func (p *process) Docs(ctx context.Context, kind store.Kind, after string, limit int) ([]store.Doc, error) {
	docs, err := p.Memory.Docs(ctx, kind, after, limit)
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	p.world.docs += len(docs)
	return docs, err
}

func (p *process) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	if kind == store.KindCancel {
		p.world.mu.Lock()
		p.world.mark++
		p.world.mu.Unlock()
	}
	return p.Memory.Doc(ctx, kind, key)
}

func (w *world) looked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mark
}

func (w *world) listed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.docs
}

// heard returns what was said, one line each.
func (w *world) heard() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return told(w.said)
}

// ends returns what was said of the ends of attempts.
func (w *world) ends() []string {
	var ends []string
	for _, l := range w.heard() {
		if l[:10] != "bai.status" {
			ends = append(ends, l)
		}
	}
	return ends
}

func (w *world) live() []string {
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

// record has the run known as it is, as the gateway does.
func (w *world) record(r store.Run) {
	w.t.Helper()
	c := store.Change{Run: r.ID, Revision: r.Revision, Event: fmt.Sprint("e", r.Revision)}
	if err := w.store.PutRun(w.t.Context(), r, c); err != nil {
		w.t.Fatal(err)
	}
}

// cancel sets the mark of a run, as the gateway does before it says so.
func (w *world) cancel(run string) event.Command {
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
