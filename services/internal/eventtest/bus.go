// Package eventtest connects the steps of several services inside one test.
package eventtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// Bus delivers every event twice to every step of its topic, in the order of publication, and to a step that takes several at once a third
// time, as two of one call. A step that cannot be repeated fails, and so do two different events that share an ID.
//
// It delivers one event at a time, whoever publishes it. Several goroutines may use a Bus, and steps may publish while they handle an
// event.
type Bus struct {
	tb testing.TB

	mu        sync.Mutex
	idle      *sync.Cond // signaled when no goroutine delivers
	busy      bool
	steps     map[string][]service.Step // by topic
	queue     []queuedEvent
	seen      map[string]string // by ID
	published []queuedEvent     // everything, from the beginning
	unread    []string
	err       error // the first one since the last deliver
}

// queuedEvent is an event under way.
type queuedEvent struct {
	ev event.Event
	m  event.Message
}

// NewBus returns a Bus without steps.
func NewBus(tb testing.TB) *Bus {
	tb.Helper()
	b := &Bus{tb: tb, steps: make(map[string][]service.Step), seen: make(map[string]string)}
	b.idle = sync.NewCond(&b.mu)
	return b
}

// Consume subscribes step to its topic. The returned Runnable only waits: the publishers deliver the events.
func (b *Bus) Consume(_ string, step service.Step) service.Runnable {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.steps[step.Topic] = append(b.steps[step.Topic], step)
	return func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}
}

// Publish publishes events for a service. It delivers them before it returns, unless another goroutine or an outer call delivers already. A
// step that cannot handle an event fails the test.
func (b *Bus) Publish(ctx context.Context, events ...event.Event) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if err := b.add(events, true); err != nil {
		return err
	}
	b.deliverUnlessBusy(context.WithoutCancel(ctx))
	return nil
}

// Ready always returns nil.
func (*Bus) Ready(context.Context) error { return nil }

// PublishAndWait publishes ev and all events that follow from it, and returns when no step has more events. Events are encoded, as in
// Kafka.
func (b *Bus) PublishAndWait(ev event.Event) {
	b.tb.Helper()
	if err := b.TryPublish(ev); err != nil {
		b.tb.Fatal(err)
	}
}

// TryPublish is PublishAndWait for a step that may fail: it returns the first error. The failed event is not delivered again, unless by
// Redeliver.
func (b *Bus) TryPublish(ev event.Event) error {
	b.tb.Helper()
	if err := b.add([]event.Event{ev}, true); err != nil {
		return err
	}
	return b.deliver()
}

// Redeliver publishes an event that was published before.
func (b *Bus) Redeliver(ev event.Event) {
	b.tb.Helper()
	if err := errors.Join(b.add([]event.Event{ev}, false), b.deliver()); err != nil {
		b.tb.Fatal(err)
	}
}

// Replay delivers all published events again from the beginning, as after a reset of all groups to offset 0. If that changes nothing,
// TakeLines returns nothing afterwards.
func (b *Bus) Replay() {
	b.tb.Helper()
	b.mu.Lock()
	b.queue = append(b.queue, b.published...)
	b.mu.Unlock()
	if err := b.deliver(); err != nil {
		b.tb.Fatal(err)
	}
}

// TakeLines returns the events that were published since the last call, one line each, without duplicates.
func (b *Bus) TakeLines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := b.unread
	b.unread = nil
	return lines
}

// Published returns all published events of a type, without duplicates, in order.
func Published[T event.Event](b *Bus) []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	var evs []T
	for _, l := range b.published {
		if ev, ok := l.ev.(T); ok {
			evs = append(evs, ev)
		}
	}
	return evs
}

// add queues events, encoded; with onlyNew it omits duplicates.
func (b *Bus) add(events []event.Event, onlyNew bool) error {
	b.tb.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ev := range events {
		m, err := event.Encode(ev)
		if err != nil {
			return err
		}
		m.PublishedAt = time.Now()
		l := queuedEvent{ev, m}
		if onlyNew && !b.recordIfNew(l) {
			continue
		}
		b.queue = append(b.queue, l)
	}
	return nil
}

// recordIfNew reports whether l is new, and records it.
func (b *Bus) recordIfNew(l queuedEvent) bool {
	b.tb.Helper()
	if before, ok := b.seen[l.m.ID]; ok {
		if before != l.m.Topic+string(l.m.Value) {
			b.tb.Errorf("two facts share the ID %s:\n%s\n%s", l.m.ID, before, l.m.Topic+string(l.m.Value))
		}
		return false
	}
	b.seen[l.m.ID] = l.m.Topic + string(l.m.Value)
	b.published = append(b.published, l)
	b.unread = append(b.unread, line(l.ev))
	return true
}

// deliver delivers the queued events until none is left, and waits for another goroutine that delivers already. It returns the first error
// of any step since its last call.
func (b *Bus) deliver() error {
	b.tb.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.busy {
		b.idle.Wait()
	}
	b.drain(b.tb.Context())
	err := b.err
	b.err = nil
	return err
}

// deliverUnlessBusy delivers the queued events, or leaves that to a goroutine that delivers already. The error of a step fails the test.
func (b *Bus) deliverUnlessBusy(ctx context.Context) {
	b.tb.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy {
		return
	}
	b.drain(ctx)
	if b.err != nil {
		b.tb.Error(b.err)
		b.err = nil
	}
}

// drain delivers the queued events. The caller holds the lock before and after.
func (b *Bus) drain(ctx context.Context) {
	b.tb.Helper()
	b.busy = true
	for len(b.queue) > 0 {
		l := b.queue[0]
		b.queue = b.queue[1:]
		steps := slices.Clone(b.steps[l.m.Topic])
		b.mu.Unlock()
		err := b.callSteps(ctx, steps, l.m)
		b.mu.Lock()
		if b.err == nil {
			b.err = err
		}
	}
	b.busy = false
	b.idle.Broadcast()
}

// callSteps passes m to each step, several times, and queues the events that they return.
func (b *Bus) callSteps(ctx context.Context, steps []service.Step, m event.Message) error {
	b.tb.Helper()
	for _, step := range steps {
		calls := [][]event.Message{{m}, {m}}
		if step.MaxBatch > 1 {
			calls = append(calls, []event.Message{m, m})
		}
		for _, ms := range calls {
			out, err := step.Handle(ctx, ms)
			if err == nil {
				err = b.add(out, true)
			}
			if err != nil {
				return fmt.Errorf("handle %s: %w", m.Topic, err)
			}
		}
	}
	return nil
}

// line describes ev for people.
func line(ev event.Event) string {
	s := ev.Topic() + " " + ev.Head().Run
	switch ev := ev.(type) {
	case event.Command:
		return fmt.Sprintf("%s %s", s, ev.Kind)
	case event.Status:
		return fmt.Sprintf("%s %s: %s", s, ev.Phase, ev.Message)
	case event.Retried:
		return fmt.Sprintf("%s attempt %d after %s %s: %s", s, ev.Attempt, ev.Class, ev.Reason, ev.Message)
	case event.Finished:
		if ev.Outcome == event.Failed {
			return fmt.Sprintf("%s %s (%s %s): %s", s, ev.Outcome, ev.Class, ev.Reason, ev.Message)
		}
		return fmt.Sprintf("%s %s: %s", s, ev.Outcome, ev.Message)
	}
	return s
}
