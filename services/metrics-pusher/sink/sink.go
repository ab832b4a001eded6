// Package sink copies what pods have shipped to places other than the store, for
// those who look at it there: each place beside the step that indexes, by a
// consumer group of its own, so that one that is away delays nobody.
//
// The store has everything; a copy has what its place takes. What it will never
// take is counted and said, and the rest goes on: nothing becomes a dead letter
// for a sink's sake. What it cannot take now is tried again, for as long as the
// brokers keep the topic.
package sink

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// Sink takes samples.
type Sink interface {
	// Samples returns when the place has all samples of batches. It says how many
	// it will never have by a *RejectedError, once it has all others; any other error
	// means that it may have none of them now, and that all are to be handed over
	// again.
	Samples(ctx context.Context, batches []event.Metrics) error
}

// finishedSink is a sink that is told, too, how runs end.
type finishedSink interface {
	// Finished is to ends of runs what Samples is to samples.
	Finished(ctx context.Context, ends []event.Finished) error
}

// RejectedError says that a place will never take something.
type RejectedError struct {
	Count int   // how many samples, or ends of runs
	Cause error // of one of them
}

// Error implements error.
func (r *RejectedError) Error() string {
	return fmt.Sprintf("%d are refused, one of them because: %v", r.Count, r.Cause)
}

// Unwrap returns why.
func (r *RejectedError) Unwrap() error { return r.Cause }

// Rejected returns a *RejectedError, or nil where nothing is refused.
func Rejected(count int, why error) error {
	if count == 0 {
		return nil
	}
	return &RejectedError{Count: count, Cause: why}
}

// Bus carries events.
type Bus interface {
	// Consume returns the part that hands what step hears to step. Parts of one
	// group share the events.
	Consume(group string, step service.Step) service.Runnable
}

// Meter counts.
type Meter interface {
	// Copied says how many samples, or ends of runs, a sink has taken and refused.
	Copied(sink string, taken, refused int)
}

// Deps are what every sink needs from others.
type Deps struct {
	Bus   Bus
	Meter Meter
	Now   func() time.Time // time.Now but in tests
	Log   *zap.Logger
}

// maxMessages is how many messages a sink is handed at once, at most.
const maxMessages = 64

// New returns the parts that fill a sink, by name. The names are unique among
// all services, so that one process can run several.
func New(name string, to Sink, d Deps) map[string]service.Runnable {
	k := &subscriber{name: name, sink: to, meter: d.Meter, rejections: newRejectionLog(d.Now, d.Log.With(zap.String("sink", name)))}
	group := "metrics-pusher-sink-" + name
	parts := map[string]service.Runnable{"metrics-pusher/sink/" + name: d.Bus.Consume(group, optional(service.Batch(maxMessages, k.samples)))}
	if ender, ok := to.(finishedSink); ok {
		k.finishedSink = ender
		parts["metrics-pusher/sink/"+name+"/finished"] = d.Bus.Consume(group, optional(service.Batch(maxMessages, k.finished)))
	}
	return parts
}

func optional(s service.Step) service.Step {
	s.Optional = true
	return s
}

// subscriber hands what it hears to one sink.
type subscriber struct {
	name         string
	sink         Sink
	finishedSink finishedSink
	meter        Meter
	rejections   *rejectionLog
}

func (k *subscriber) samples(ctx context.Context, batches []event.Metrics) ([]event.Event, error) {
	n := 0
	for _, b := range batches {
		n += len(b.Samples)
	}
	return nil, k.count(n, k.sink.Samples(ctx, batches))
}

func (k *subscriber) finished(ctx context.Context, ends []event.Finished) ([]event.Event, error) {
	return nil, k.count(len(ends), k.finishedSink.Finished(ctx, ends))
}

// count counts what became of n, and says what was refused.
func (k *subscriber) count(n int, err error) error {
	var r *RejectedError
	switch {
	case errors.As(err, &r):
		k.meter.Copied(k.name, max(n-r.Count, 0), r.Count)
		k.rejections.warn(r)
		return nil
	case err != nil:
		return fmt.Errorf("copy to %s: %w", k.name, err)
	}
	k.meter.Copied(k.name, n, 0)
	return nil
}
