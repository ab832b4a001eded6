// Package dispatch sends notices to receivers. The notices are documents of kind store.KindDelivery, which the analyst enqueues with the
// status Waiting (see notice.Enqueue); they are also the log of what became of them. Several processes may dispatch from one store: a lease
// for each receiver lets one of them send to it at a time.
//
// Before a notice is sent, its document says so, and after it what the receiver answered. So no notice is lost, and one whose send was cut
// off in between is sent again, marked as such.
package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver"
	"github.com/benchmark-ai/bai/services/analyst/receiver/open"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Store has the documents of notices, incidents, mutes and leases.
type Store interface {
	store.Docs
	store.Lister
}

// Dispatcher sends the notices that wait.
type Dispatcher struct {
	workers map[string]*worker
	store   Store
	now     func() time.Time
	log     *zap.Logger
	close   func() error
}

// New returns a dispatcher for the receivers in the settings. It reads their secrets, to fail at once if there are none, and waits for no
// receiver.
func New(s open.Settings, st Store, now func() time.Time, log *zap.Logger) (*Dispatcher, error) {
	channels, end, err := open.Channels(s, now)
	if err != nil {
		return nil, err
	}
	d := over(channels, st, now, log)
	d.close = end
	return d, nil
}

// over returns a dispatcher for receivers that are open. Run does not close them.
func over(channels []receiver.Channel, st Store, now func() time.Time, log *zap.Logger) *Dispatcher {
	holder := ulid.Make().String()
	d := &Dispatcher{workers: make(map[string]*worker, len(channels)), store: st, now: now, log: log, close: func() error { return nil }}
	for _, c := range channels {
		d.workers[c.Name] = newWorker(c, st, holder, now, log.With(zap.String("receiver", c.Name)))
	}
	return d
}

// Run sends notices until ctx is done, to each receiver by itself, and closes the receivers. It may be called once.
func (d *Dispatcher) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, w := range d.workers {
		all.Go(func() { w.run(ctx) })
	}
	all.Wait()
	<-ctx.Done() // also without receivers
	return d.close()
}

// Wake has the dispatcher look for new notices at once. It never blocks. New notices are found without it too, a few seconds later.
func (d *Dispatcher) Wake() {
	for _, w := range d.workers {
		w.loop.Wake()
	}
}

// key is the key of the document of a notice.
func key(n notice.Notice) string { return notice.Key(n.Receiver, n.ID) }
