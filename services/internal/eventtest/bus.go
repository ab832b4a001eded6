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

// Bus hands every event twice to every step of its topic, in the order in
// which events were said, and where a step takes several at once, a third time
// as two of one call. A step that is not safe to repeat does not survive it,
// nor do two facts that share an ID.
//
// One event is handed over at a time, whoever says it. A Bus may be used by
// several goroutines, and steps may publish while they handle.
type Bus struct {
	tb testing.TB

	mu        sync.Mutex
	idle      *sync.Cond // nobody hands over
	busy      bool
	steps     map[string][]service.Step // by topic
	queue     []queuedEvent
	seen      map[string]string // by ID
	published []queuedEvent     // everything, from the beginning
	unread    []string
	err       error // the first since it was last asked for
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

// Consume has step handed the events of its topic. The Part that it returns
// only waits: events are handed over by those who say them.
func (b *Bus) Consume(_ string, step service.Step) service.Runnable {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.steps[step.Topic] = append(b.steps[step.Topic], step)
	return func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}
}

// Publish says events for a service. They are handed over before it returns,
// unless another goroutine or an outer call does so already. A step that cannot
// handle one fails the test.
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

// Ready implements what services ask of a bus: it always is.
func (*Bus) Ready(context.Context) error { return nil }

// PublishAndWait publishes ev and all that follows from it, and returns when no step has
// anything more to say. Events travel encoded, as they do in Kafka.
func (b *Bus) PublishAndWait(ev event.Event) {
	b.tb.Helper()
	if err := b.TryPublish(ev); err != nil {
		b.tb.Fatal(err)
	}
}

// TryPublish is Say for a step that may fail: it returns the first error. The event
// that failed is not handed over again, unless by Again.
func (b *Bus) TryPublish(ev event.Event) error {
	b.tb.Helper()
	if err := b.add([]event.Event{ev}, true); err != nil {
		return err
	}
	return b.deliver()
}

// Redeliver publishes an event that was said before, as if it were redelivered.
func (b *Bus) Redeliver(ev event.Event) {
	b.tb.Helper()
	if err := errors.Join(b.add([]event.Event{ev}, false), b.deliver()); err != nil {
		b.tb.Fatal(err)
	}
}

// Replay hands over everything that was said so far from the beginning, as when
// all groups were set back to offset 0. Where it changes nothing, Heard returns
// nothing afterwards.
func (b *Bus) Replay() {
	b.tb.Helper()
	b.mu.Lock()
	b.queue = append(b.queue, b.published...)
	b.mu.Unlock()
	if err := b.deliver(); err != nil {
		b.tb.Fatal(err)
	}
}

// TakeLines returns what was said since the last call, one line each, duplicates
// left out.
func (b *Bus) TakeLines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := b.unread
	b.unread = nil
	return lines
}

// Published returns every event of a type that was said so far, duplicates left out,
// in order.
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

// add queues events, encoded; duplicates only if they are not news.
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

// recordIfNew reports whether l was not said before, and remembers it.
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

// deliver hands over what is queued until nothing is left, and waits for whoever
// does so already. It returns the first error of any step since it was last
// asked for.
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

// deliverUnlessBusy hands over what is queued, or leaves it to whoever does so already. The
// error of a step fails the test.
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

// drain hands over what is queued. It is called, and returns, with the lock.
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

// callSteps hands m to each step, again and again, and queues what they answer.
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
