// Package sink copies samples to places other than the store. Each sink has a consumer group of its own beside the step that indexes, so
// that a sink that is away delays no other.
//
// The store has all samples; a copy has the samples that its place takes. Samples that the place will never take are counted and logged,
// and the others go on: a sink makes no dead letters. Samples that the place cannot take now are retried as long as the brokers keep the
// topic.
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
	// Samples returns when the place has all samples of batches. If the place will never take some of them, it returns a *RejectedError
	// with their number once the place has all others. Any other error means that the place may have none of them now, and that the caller
	// must pass all of them again.
	Samples(ctx context.Context, batches []event.Metrics) error
}

// finishedSink is a sink that also gets the ends of runs.
type finishedSink interface {
	// Finished does for ends of runs what Samples does for samples.
	Finished(ctx context.Context, ends []event.Finished) error
}

// RejectedError means that a place will never take some samples or ends of runs.
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

// Rejected returns a *RejectedError, or nil if count is 0.
func Rejected(count int, why error) error {
	if count == 0 {
		return nil
	}
	return &RejectedError{Count: count, Cause: why}
}

// Bus carries events.
type Bus interface {
	// Consume returns a runnable that passes the events of a group to step. Runnables of one group share the events.
	Consume(group string, step service.Step) service.Runnable
}

// Meter counts.
type Meter interface {
	// Copied counts the samples, or ends of runs, that a sink has taken and refused.
	Copied(sink string, taken, refused int)
}

// Deps are the dependencies of every sink.
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
	parts := map[string]service.Runnable{"metrics-pusher/sink/" +
		name: d.Bus.Consume(group, optional(service.Batch(maxMessages, k.samples)))}
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

// subscriber passes events to one sink.
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

// count counts the taken and refused ones of n samples or ends, and logs refused ones.
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
