// Package service is the vocabulary of services: steps that turn events into events, and
// runnables of a process.
package service

import (
	"context"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Runnable is one long-running part of a process. It blocks until ctx is done,
// cleans up after itself, and returns nil if that is why it ended.
type Runnable func(ctx context.Context) error

// Handler turns one event into the events that follow from it.
//
// A nil error means that the event is done. An error means that it could not be handled
// now, and the same event will be delivered again, unless the error is event.ErrPoison. A
// user's mistake is not an error but an event with its message. An event may be delivered
// again whatever was returned.
type Handler[T event.Event] func(ctx context.Context, ev T) ([]event.Event, error)

// Step is a handler that has forgotten its type, and the topic that it hears.
type Step struct {
	Topic string
	// MaxBatch is how many messages Handle takes at once. Messages of one call are
	// of one topic and in order.
	MaxBatch int
	// Optional means that nothing depends on the step: its backlog does not make a
	// process unready, and messages that it cannot decode become dead letters through
	// another consumer of the topic.
	Optional bool
	// Handle is done with all messages or with none. A caller to which it says
	// event.ErrPoison for several messages hands them over again one by one.
	Handle func(ctx context.Context, ms []event.Message) ([]event.Event, error)
}

// On makes a Step of handle. A message that cannot be decoded is event.ErrPoison.
func On[T event.Event](handle Handler[T]) Step {
	return Batch(1, func(ctx context.Context, evs []T) ([]event.Event, error) { return handle(ctx, evs[0]) })
}

// Batch makes a Step that handles up to maxBatch events at once, where that is cheaper.
// All of them succeed, or none.
func Batch[T event.Event](maxBatch int, handle func(ctx context.Context, evs []T) ([]event.Event, error)) Step {
	var zero T
	return Step{Topic: zero.Topic(), MaxBatch: maxBatch, Handle: func(ctx context.Context, ms []event.Message) ([]event.Event, error) {
		evs := make([]T, 0, len(ms))
		for _, m := range ms {
			ev, err := event.Decode[T](m)
			if err != nil {
				return nil, err
			}
			evs = append(evs, ev)
		}
		return handle(ctx, evs)
	}}
}
