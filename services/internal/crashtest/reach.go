package crashtest

import (
	"context"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// Store is a store that fails after its process was killed.
type Store struct {
	storetest.Store

	process *Process
}

// Store returns s for the process.
func (p *Process) Store(s storetest.Store) Store { return Store{s, p} }

// CreateDoc is an effect.
func (s Store) CreateDoc(ctx context.Context, d store.Doc) error {
	return s.process.Do(func() error { return s.Store.CreateDoc(ctx, d) })
}

// ReplaceDoc is an effect.
func (s Store) ReplaceDoc(ctx context.Context, d store.Doc) (version int64, err error) {
	err = s.process.Do(func() error { version, err = s.Store.ReplaceDoc(ctx, d); return err })
	return version, err
}

// DeleteDoc is an effect.
func (s Store) DeleteDoc(ctx context.Context, d store.Doc) error {
	return s.process.Do(func() error { return s.Store.DeleteDoc(ctx, d) })
}

// PutRun is an effect.
func (s Store) PutRun(ctx context.Context, r store.Run, c store.Change) error {
	return s.process.Do(func() error { return s.Store.PutRun(ctx, r, c) })
}

// PutPoints is an effect.
func (s Store) PutPoints(ctx context.Context, p store.RunPoints) error {
	return s.process.Do(func() error { return s.Store.PutPoints(ctx, p) })
}

// Doc reads, until the process is killed.
func (s Store) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	if err := s.process.Alive(); err != nil {
		return store.Doc{}, err
	}
	return s.Store.Doc(ctx, kind, key)
}

// Docs reads, until the process is killed.
func (s Store) Docs(ctx context.Context, kind store.Kind, after string, limit int) ([]store.Doc, error) {
	if err := s.process.Alive(); err != nil {
		return nil, err
	}
	return s.Store.Docs(ctx, kind, after, limit)
}

// Run reads, until the process is killed.
func (s Store) Run(ctx context.Context, id string) (store.Run, error) {
	if err := s.process.Alive(); err != nil {
		return store.Run{}, err
	}
	return s.Store.Run(ctx, id)
}

// Publisher publishes events.
type Publisher interface {
	Publish(ctx context.Context, events ...event.Event) error
}

// Consumer passes events to steps.
type Consumer interface {
	Consume(group string, step service.Step) service.Runnable
}

// Bus is a bus that fails after its process was killed.
type Bus struct {
	bus     Publisher
	process *Process
}

// Bus returns b for the process. The process can consume only if b is a Consumer too.
func (p *Process) Bus(b Publisher) Bus { return Bus{b, p} }

// Publish is an effect, unless there are no events.
func (b Bus) Publish(ctx context.Context, events ...event.Event) error {
	if len(events) == 0 {
		return b.process.Alive()
	}
	return b.process.Do(func() error { return b.bus.Publish(ctx, events...) })
}

// Consume passes events to the step until the process is killed. Publishing the events that the step returns is an effect. The bus
// completes the call only after that, so a process that is killed with it gets the call again.
func (b Bus) Consume(group string, step service.Step) service.Runnable {
	consumer, ok := b.bus.(Consumer)
	if !ok {
		return nil
	}
	handle := step.Handle
	step.Handle = func(ctx context.Context, ms []event.Message) ([]event.Event, error) {
		if err := b.process.Alive(); err != nil {
			return nil, err
		}
		answers, err := handle(ctx, ms)
		if err == nil {
			err = b.Publish(ctx, answers...)
		}
		return nil, err
	}
	return consumer.Consume(group, step)
}

// Objects is the part of a cluster that creates, ends and shows objects.
type Objects interface {
	cluster.Creator
	cluster.Ender
	cluster.Labeler
	Observe(ctx context.Context, r cluster.Ref) (cluster.Snapshot, error)
}

// Cluster is a cluster that fails after its process was killed.
type Cluster struct {
	Objects

	process *Process
}

// Cluster returns c for the process.
func (p *Process) Cluster(c Objects) Cluster { return Cluster{c, p} }

// Create is an effect.
func (c Cluster) Create(ctx context.Context, o cluster.Object) error {
	return c.process.Do(func() error { return c.Objects.Create(ctx, o) })
}

// Delete is an effect.
func (c Cluster) Delete(ctx context.Context, r cluster.Ref) error {
	return c.process.Do(func() error { return c.Objects.Delete(ctx, r) })
}

// Stop is an effect.
func (c Cluster) Stop(ctx context.Context, r cluster.Ref) error {
	return c.process.Do(func() error { return c.Objects.Stop(ctx, r) })
}

// Observe reads, until the process is killed.
func (c Cluster) Observe(ctx context.Context, r cluster.Ref) (cluster.Snapshot, error) {
	if err := c.process.Alive(); err != nil {
		return cluster.Snapshot{}, err
	}
	return c.Objects.Observe(ctx, r)
}

// Labels reads, until the process is killed.
func (c Cluster) Labels(ctx context.Context, kind, scope, name string) (map[string]string, error) {
	if err := c.process.Alive(); err != nil {
		return nil, err
	}
	return c.Objects.Labels(ctx, kind, scope, name)
}
