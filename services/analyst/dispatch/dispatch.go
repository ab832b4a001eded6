// Package dispatch sends notices to receivers. The notices are documents of kind store.KindDelivery, which the analyst enqueues with the status
// Waiting (see notice.Enqueue); they are also the log of what became of them. Several processes may dispatch from one store: a lease for each receiver lets one of
// them send to it at a time.
//
// Before a notice is sent, its document says so, and after it what the receiver answered. So no notice is lost, and one whose send was cut off
// in between is sent again, marked as such.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver"
	"github.com/benchmark-ai/bai/services/analyst/receiver/open"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Store has the documents of notices, incidents, mutes and leases.
type Store interface {
	store.Docs
	store.Lister
}

// Dispatcher sends the notices that wait.
type Dispatcher struct {
	settings open.Settings
	workers  map[string]*worker
	store    Store
	now      func() time.Time
	log      *zap.Logger
	close    func() error
}

// New returns a dispatcher for the receivers in the settings. It reads their secrets, to fail at once if there are none, and waits for no
// receiver.
func New(s open.Settings, st Store, now func() time.Time, log *zap.Logger) (*Dispatcher, error) {
	channels, end, err := open.Channels(s, now)
	if err != nil {
		return nil, err
	}
	d := Over(channels, st, now, log)
	d.close, d.settings = end, s
	return d, nil
}

// Over returns a dispatcher for receivers that are open. Run does not close them.
func Over(channels []receiver.Channel, st Store, now func() time.Time, log *zap.Logger) *Dispatcher {
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

// Receivers returns the receivers of an alarm of a namespace: those of the names in its notify that the settings have for the namespace, or the
// defaults of the namespace if it names none. Others are logged.
func (d *Dispatcher) Receivers(namespace string, notify []string) []string {
	names, err := d.settings.For(namespace, notify)
	if err != nil {
		d.log.Warn("an alarm names a receiver that it cannot use", zap.String("namespace", namespace), zap.Error(err))
	}
	return names
}

// Wake has the dispatcher look for new notices at once. It never blocks. New notices are found without it too, a few seconds later.
func (d *Dispatcher) Wake() {
	for _, w := range d.workers {
		w.loop.Wake()
	}
}

// ErrUnknown means that the settings have no receiver of a name for a namespace.
var ErrUnknown = errors.New("the settings have no receiver of this name for the namespace")

// testPoll is the time between two looks at the document of a test.
const testPoll = 100 * time.Millisecond

// Test sends a notice that is marked as a test the way that others go, but past quiet hours, rate and mutes, and returns the answer of the
// receiver. It waits until a process that runs a dispatcher has sent it. The error says why the receiver did not take it, and is ErrUnknown if
// the namespace has no such receiver.
func (d *Dispatcher) Test(ctx context.Context, name, namespace, by string) (answer string, err error) {
	w, ok := d.workers[name]
	if !ok || !w.channel.Rules.Allows(namespace) {
		return "", fmt.Errorf("receiver %q: %w", name, ErrUnknown)
	}
	n := notice.NewTest(name, namespace, by, d.now())
	if err := notice.Enqueue(ctx, d.store, n, n.Made); err != nil {
		return "", fmt.Errorf("test receiver %q: %w", name, err)
	}
	for d.Wake(); control.Sleep(ctx, testPoll); {
		got, _, err := store.Get[notice.Delivery](ctx, d.store, store.KindDelivery, key(n))
		switch {
		case err != nil:
			return "", fmt.Errorf("look at the test of receiver %q: %w", name, err)
		case got.Status == notice.Sent:
			return got.Answer, nil
		case got.Status != notice.Waiting:
			return "", fmt.Errorf("receiver %q did not take the test: %s", name, got.Answer)
		}
	}
	return "", fmt.Errorf("wait for the answer of receiver %q: %w", name, ctx.Err())
}

// key is the key of the document of a notice.
func key(n notice.Notice) string { return notice.Key(n.Receiver, n.ID) }
