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
	// it will never have by a *RefusedError, once it has all others; any other error
	// means that it may have none of them now, and that all are to be handed over
	// again.
	Samples(ctx context.Context, batches []event.Metrics) error
}

// Ender is a sink that is told, too, how runs end.
type Ender interface {
	// Finished is to ends of runs what Samples is to samples.
	Finished(ctx context.Context, ends []event.Finished) error
}

// RefusedError says that a place will never take something.
type RefusedError struct {
	Count int   // how many samples, or ends of runs
	Why   error // of one of them
}

// Error implements error.
func (r *RefusedError) Error() string {
	return fmt.Sprintf("%d are refused, one of them because: %v", r.Count, r.Why)
}

// Unwrap returns why.
func (r *RefusedError) Unwrap() error { return r.Why }

// Refused returns a *RefusedError, or nil where nothing is refused.
func Refused(count int, why error) error {
	if count == 0 {
		return nil
	}
	return &RefusedError{Count: count, Why: why}
}

// Bus carries events.
type Bus interface {
	// Consume returns the part that hands what step hears to step. Parts of one
	// group share the events.
	Consume(group string, step service.Step) service.Part
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

// most is how many messages a sink is handed at once, at most.
const most = 64

// New returns the parts that fill a sink, by name. The names are unique among
// all services, so that one process can run several.
func New(name string, to Sink, d Deps) map[string]service.Part {
	k := &desk{name: name, to: to, meter: d.Meter, said: newSaid(d.Now, d.Log.With(zap.String("sink", name)))}
	group := "metrics-pusher-sink-" + name
	parts := map[string]service.Part{"metrics-pusher/sink/" + name: d.Bus.Consume(group, aside(service.Each(most, k.samples)))}
	if ender, ok := to.(Ender); ok {
		k.ender = ender
		parts["metrics-pusher/sink/"+name+"/finished"] = d.Bus.Consume(group, aside(service.Each(most, k.finished)))
	}
	return parts
}

func aside(s service.Step) service.Step {
	s.Aside = true
	return s
}

// desk hands what it hears to one sink.
type desk struct {
	name  string
	to    Sink
	ender Ender
	meter Meter
	said  *said
}

func (k *desk) samples(ctx context.Context, batches []event.Metrics) ([]event.Event, error) {
	n := 0
	for _, b := range batches {
		n += len(b.Samples)
	}
	return nil, k.came(n, k.to.Samples(ctx, batches))
}

func (k *desk) finished(ctx context.Context, ends []event.Finished) ([]event.Event, error) {
	return nil, k.came(len(ends), k.ender.Finished(ctx, ends))
}

// came counts what became of n, and says what was refused.
func (k *desk) came(n int, err error) error {
	var r *RefusedError
	switch {
	case errors.As(err, &r):
		k.meter.Copied(k.name, max(n-r.Count, 0), r.Count)
		k.said.refused(r)
		return nil
	case err != nil:
		return fmt.Errorf("copy to %s: %w", k.name, err)
	}
	k.meter.Copied(k.name, n, 0)
	return nil
}
