// Package analyst finds incidents: it looks at each new point of a series that a rule watches, the alarms in the newest descriptor of a
// task, and notes what receivers are to be sent.
//
// Whatever wakes it, it gathers, decides and acts in the same way. Packages rule, group and incident below it have every rule about
// incidents. All effects are documents with IDs that follow from their causes, so that an event that comes again, a kill between two
// effects, and several analysts at once end in the same documents. The order of the effects is: the incidents that a rule has in a series,
// as pending; the lists of incidents; the incidents; their records; the group, with its transitions and with their notices in its outbox;
// the deliveries of these; the group without them; and the end of pending, for the analysis that ends alone. What kills leave between two
// of these, the event mends when it comes again, and else the clock.
package analyst

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are what an operator may choose. The zero value works.
type Settings struct {
	Interval time.Duration `toml:"interval"` // how often missing values and acknowledgements are looked for; zero means 1m
	Lease    time.Duration `toml:"lease"`    // how long another process waits to look for them after a kill; zero means 1m
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"interval", s.Interval}, {"lease", s.Lease}} {
		if d.d < 0 {
			errs = append(errs, fmt.Errorf("analyst.%s: must not be negative", d.name))
		}
	}
	return errors.Join(errs...)
}

// Bus carries events.
type Bus interface {
	// Consume returns a runnable that passes the events of a group to step, and publishes the events that step returns. Runnables of one
	// group share the events.
	Consume(group string, step service.Step) service.Runnable
}

// Store has runs, their points, and documents.
type Store interface {
	store.Docs
	store.Lister
	runReader
	store.PointReader
}

// runReader reads runs.
type runReader interface {
	// Run and Runs are those of store.Runs.
	Run(ctx context.Context, id string) (store.Run, error)
	Runs(ctx context.Context, f store.RunFilter, token string, limit int) (runs []store.Run, next string, err error)
}

// Meter counts incidents.
type Meter interface {
	// RecordIncidents notes how many incidents are in each state, of those that are open or ended less than three days ago. Nil means that
	// another process counts them.
	RecordIncidents(states map[string]int)
}

// noMeter counts nothing.
type noMeter struct{}

// RecordIncidents implements Meter.
func (noMeter) RecordIncidents(map[string]int) {}

// Deps are the dependencies of the service.
type Deps struct {
	Bus       Bus
	Store     Store
	Index     store.IncidentIndex // has incidents for searching; nil for none
	Receivers notice.Receivers    // nil: those that notify names
	// Dispatch sends the deliveries that are waiting, and updates their documents. Nil sends none.
	Dispatch service.Runnable
	// Wake has the dispatcher look for new deliveries at once. Nil leaves them until it looks by itself.
	Wake  func()
	Meter Meter // counts incidents; nil counts none
	// Share is the share of the time in which series are analysed, so that an analyst in the process of other services leaves them the
	// processor and the store. Zero means 1.
	Share float64
	Now   func() time.Time // time.Now but in tests
	Log   *zap.Logger
}

// New returns the parts of the service, by name. The names are unique among all
// services, so that one process can run several.
func New(s Settings, d Deps) map[string]service.Runnable {
	s.Interval, s.Lease = cmp.Or(s.Interval, time.Minute), cmp.Or(s.Lease, time.Minute)
	a := newAnalyst(d)
	parts := map[string]service.Runnable{
		"analyst/finished":   d.Bus.Consume("analyst-finished", service.On(a.finished)),
		"analyst/summarised": d.Bus.Consume("analyst-summarised", service.On(a.summarised)),
		"analyst/clock":      newTicker(s, d, a).loop(s.Interval, d.Log),
	}
	if d.Dispatch != nil {
		parts["analyst/dispatch"] = d.Dispatch
	}
	return parts
}
