// Package deliver brings the rows of each summarised run to the destinations that its descriptor names, each row exactly once.
//
// The store has a document for each run with a destination that lacks its rows. A destination that refuses rows or cannot be reached is
// tried again, with growing pauses, until it takes them; no run fails for that. Several processes may deliver one run at a time: a
// destination takes its rows once.
package deliver

import (
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/control/queue"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Destination takes the rows of runs. Several goroutines and several processes may deliver at a time, and the same run too.
type Destination interface {
	// Deliver stores all rows of a delivery, or none. It stores nothing, and returns nil, if the rows of that run are stored already. Users
	// read the text of its error: it has no address and no password.
	Deliver(ctx context.Context, d Delivery) error
}

// Store has runs, their samples and summaries, and the documents of what is owed.
type Store interface {
	store.Docs
	store.Lister
	runReader
}

// runReader reads runs and their samples.
type runReader interface {
	// Run is that of store.Runs.
	Run(ctx context.Context, id string) (store.Run, error)
	// Samples is that of store.Reader.
	Samples(ctx context.Context, q store.SampleQuery, cursor string, limit int) (samples []store.Sample, next string, err error)
}

// Deps are the dependencies of the service.
type Deps struct {
	Store        Store
	Destinations map[string]Destination // by the names in descriptors
	Namespaces   map[string][]string    // whose runs may use a destination, by its name; none means all
	Retry        time.Duration          // longest pause between two tries; zero means 5m
	Poll         time.Duration          // how often the documents of other processes are looked for; zero means 10s
	Now          func() time.Time       // time.Now but in tests
	Log          *zap.Logger
}

// Deliverer delivers runs.
type Deliverer struct{ *worker }

// New returns a deliverer. Runs are delivered while its runnables run.
func New(d Deps) Deliverer {
	d.Retry, d.Poll = cmp.Or(d.Retry, 5*time.Minute), cmp.Or(d.Poll, 10*time.Second)
	w := &worker{Deps: d, queues: make(map[string]*queue.Queue[target]), tracked: make(map[target]bool), failing: make(map[string]bool)}
	for name := range d.Destinations {
		w.queues[name] = w.newQueue()
	}
	w.queues[""] = w.newQueue()
	return Deliverer{w}
}

// newQueue returns the queue of a destination.
func (w *worker) newQueue() *queue.Queue[target] {
	return queue.New(w.Log, queue.Settings[target]{First: min(firstPause, w.Retry), Max: w.Retry, Fields: func(at target) []zap.Field {
		return []zap.Field{zap.String("run", at.run), zap.String("destination", at.destination)}
	}})
}

// Runnables returns the parts of the service, by name. The names are unique among all services, so that one process can run several.
func (d Deliverer) Runnables() map[string]service.Runnable {
	return map[string]service.Runnable{"metrics-pusher/deliver/work": d.work}
}
