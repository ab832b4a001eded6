package collect

import (
	"context"
	"errors"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// maxQueued is how many batches wait while others are being published, so that a source that is far behind does not wait for each
// acknowledgement.
const maxQueued = 4

// batch is a set of lines and samples that are published and counted together.
type batch struct {
	lines   []event.Line
	samples []event.Sample
	events  []event.Event // of these lines and samples
}

// outbox publishes the batches of one source in their order, all waiting ones at a time. Only one goroutine may use it.
type outbox struct {
	bus         Publisher
	onPublished func(b batch, err error) error // called for each batch in order with its result; an error of it ends the source

	queued      []batch
	inFlight    []batch // being published
	done        chan error
	freeBatches []batch // whose memory can be reused
}

// put queues a batch for publishing. It blocks while maxQueued batches wait.
func (o *outbox) put(ctx context.Context, b batch) error {
	o.queued = append(o.queued, b)
	if len(o.inFlight) > 0 && len(o.queued) < maxQueued && len(o.done) == 0 {
		return nil
	}
	return o.next(ctx)
}

// drain returns when every batch is published.
func (o *outbox) drain(ctx context.Context) error {
	for len(o.inFlight)+len(o.queued) > 0 {
		if err := o.next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// next waits until the batches in flight are published, and starts to publish the queued ones.
func (o *outbox) next(ctx context.Context) error {
	if len(o.inFlight) > 0 {
		if err := o.complete(ctx, <-o.done); err != nil {
			return err
		}
	}
	if len(o.queued) == 0 {
		return nil
	}
	o.inFlight, o.queued, o.done = o.queued, nil, make(chan error, 1)
	var events []event.Event
	for _, b := range o.inFlight {
		events = append(events, b.events...)
	}
	go func(done chan<- error) { done <- o.bus.Publish(ctx, events...) }(o.done)
	return nil
}

// complete passes the result of the batches in flight to onPublished. If one of several batches can never be published, each is published
// alone, so that the others are.
func (o *outbox) complete(ctx context.Context, err error) error {
	batches := o.inFlight
	o.inFlight = nil
	alone := errors.Is(err, event.ErrPoison) && len(batches) > 1
	for _, b := range batches {
		if alone {
			err = o.bus.Publish(ctx, b.events...)
		}
		if err := o.onPublished(b, err); err != nil {
			return err
		}
	}
	o.freeBatches = append(o.freeBatches, batches...)
	return nil
}

// empty returns an empty batch, with the memory of an earlier one if there is any.
func (o *outbox) empty() batch {
	if len(o.freeBatches) == 0 {
		return batch{}
	}
	b := o.freeBatches[len(o.freeBatches)-1]
	o.freeBatches = o.freeBatches[:len(o.freeBatches)-1]
	return batch{lines: b.lines[:0], samples: b.samples[:0]}
}
