package collect

import (
	"context"
	"errors"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// maxQueued is how many batches wait while others are being published: a source
// that is far behind is not to wait for an answer to each.
const maxQueued = 4

// batch is what is counted, and in the end published or not, as one.
type batch struct {
	lines   []event.Line
	samples []event.Sample
	events  []event.Event // what is said of these
}

// outbox publishes the batches of one source in their order, all that wait at a
// time. It is of one goroutine.
type outbox struct {
	bus         Publisher
	onPublished func(b batch, err error) error // hears of each batch, in order, what came of it; its error ends the source

	queued      []batch
	inFlight    []batch // being published
	done        chan error
	freeBatches []batch // whose memory can be used again
}

// put has a batch published. It waits where too many do.
func (o *outbox) put(ctx context.Context, b batch) error {
	o.queued = append(o.queued, b)
	if len(o.inFlight) > 0 && len(o.queued) < maxQueued && len(o.done) == 0 {
		return nil
	}
	return o.next(ctx)
}

// drain returns when nothing waits, and nothing is being published.
func (o *outbox) drain(ctx context.Context) error {
	for len(o.inFlight)+len(o.queued) > 0 {
		if err := o.next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// next waits until what is being published is, and has what waits published.
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

// complete says what came of the batches that were being published. Where one of
// several can never be, each is published alone: the others can.
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

// empty returns a batch without anything in it, but with memory where some is left.
func (o *outbox) empty() batch {
	if len(o.freeBatches) == 0 {
		return batch{}
	}
	b := o.freeBatches[len(o.freeBatches)-1]
	o.freeBatches = o.freeBatches[:len(o.freeBatches)-1]
	return batch{lines: b.lines[:0], samples: b.samples[:0]}
}
