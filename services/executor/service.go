// Package executor launches each run once, as soon as there is a slot for it.
//
// A run whose data are fetched waits in the queue, which has one document for each run.
// Package slots gives free slots to the head of the queue, under a fenced lease, and
// writes them into the slot table. Package launch makes a plan for an attempt with a
// slot, and creates the objects of the plan in the cluster. It deletes the objects when
// the run has finished, and the slot is free when they are gone.
//
// All effects can be repeated. Documents and objects are created or deleted, and never
// changed, except for the slot table, which is written by compare-and-set. The process
// that creates an attempt's plan decides whether the attempt is ever launched. So a
// crash between any two steps leads to one launch, and a replay of all events to none.
package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/executor/launch"
	"github.com/benchmark-ai/bai/services/executor/slots"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/plan"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// Settings are the operator's settings. The zero value works with the local
// cluster.
type Settings struct {
	Engine   string         `toml:"engine"`    // cluster that runs are launched in: local or kubernetes; empty means local
	Slots    int            `toml:"slots"`     // maximum number of runs that hold a slot; zero means 4
	PerUser  int            `toml:"per_user"`  // maximum number of slots of one user; zero means no limit
	PerLabel map[string]int `toml:"per_label"` // maximum slots of runs with a label: "label=value", or "label" for each value
	// Keep is the rule for objects after the end of runs whose descriptor has none: never, failed, or all
	// for a time such as 1h; empty means never. A server or a worker that still runs at the end is ended
	// first.
	Keep           string             `toml:"keep"`
	Priorities     map[string]int     `toml:"priorities"` // "label=value" → priority of its runs, -1000 to 1000; other runs have 0
	Name           string             `toml:"name"`       // unique name of this process among the executors; empty means a random name
	Lease          time.Duration      `toml:"lease"`      // time after which another executor takes over from a crashed one; zero means 3 s
	Poll           time.Duration      `toml:"poll"`       // time between two checks of the queue without an event; zero means 1 s
	Reconcile      time.Duration      `toml:"reconcile"`  // time between two searches for runs whose end was missed; zero means 10 s
	Positions      time.Duration      `toml:"positions"`  // time between two reports of queue positions to a user; zero means 5 s
	Pods           transpile.Settings `toml:"pods"`
	NoLimitsReason string             `toml:"-"` // why the local cluster enforces no limits of CPU and memory; empty means that it does

	// that descriptors may name, with the namespaces of each (none means all); nil: nothing is known of them
	Destinations map[string][]string `toml:"-"`
	Receivers    map[string][]string `toml:"-"` // that alarms may notify, likewise

	Engines map[string]EngineSettings `toml:"-"` // engines beside the default one, by the name that descriptors use
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	if s.Engine != "" && s.Engine != plan.EngineLocal && s.Engine != plan.EngineKubernetes {
		errs = append(errs, fmt.Errorf("executor.engine: %q, want %s or %s", s.Engine, plan.EngineLocal, plan.EngineKubernetes))
	}
	errs = append(errs, s.limits(), s.validateEngines())
	if _, err := launch.ParseKeep(s.Keep); err != nil {
		errs = append(errs, err)
	}
	for label, p := range s.Priorities {
		if name, _, ok := strings.Cut(label, "="); !ok || name == "" {
			errs = append(errs, fmt.Errorf("executor.priorities: %q, want label=value", label))
		}
		if p > slots.MaxPriority || p < -slots.MaxPriority {
			errs = append(errs, fmt.Errorf("executor.priorities: %q has %d, want %d to %d", label, p,
				-slots.MaxPriority, slots.MaxPriority))
		}
	}
	for name, d := range map[string]time.Duration{"lease": s.Lease, "poll": s.Poll, "reconcile": s.Reconcile, "positions": s.Positions} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("executor.%s: must not be negative", name))
		}
	}
	return errors.Join(append(errs, s.Pods.Validate("executor.pods"))...)
}

// limits returns the faults of the settings that limit runs.
func (s Settings) limits() error {
	var errs []error
	if s.Slots < 0 {
		errs = append(errs, errors.New("executor.slots: must not be negative"))
	}
	if s.PerUser < 0 {
		errs = append(errs, errors.New("executor.per_user: must not be negative"))
	}
	for label, n := range s.PerLabel {
		if name, _, _ := strings.Cut(label, "="); name == "" || n < 1 {
			errs = append(errs, fmt.Errorf("executor.per_label: %q has %d, want label or label=value, and a number from 1", label, n))
		}
	}
	return errors.Join(errs...)
}

func (s Settings) quota() slots.Quota {
	engines := make(map[string]int, len(s.Engines))
	for name, e := range s.Engines {
		engines[name] = cmp.Or(e.Slots, defaultSlots)
	}
	return slots.Quota{Slots: s.Slots, Engines: engines, PerUser: s.PerUser, PerLabel: s.PerLabel}
}

// defaultSlots is the number of slots of an engine without a setting.
const defaultSlots = 4

// Planner returns the planner that checks, previews and launches descriptors by these
// settings, on each engine. It asks no registries if noRegistry is true.
func (s Settings) Planner(noRegistry bool) plan.Planner {
	planner := plan.New(s.Engine, s.Pods, noRegistry)
	planner.Destinations, planner.Receivers = s.Destinations, s.Receivers
	for name, e := range s.Engines {
		if planner.Named == nil {
			planner.Named = make(map[string]plan.Planner, len(s.Engines))
		}
		named := plan.New(e.Kind, e.Pods, noRegistry)
		named.Engine = name
		planner.Named[name] = named
	}
	return planner
}

func (s Settings) withDefaults() Settings {
	s.Slots = cmp.Or(s.Slots, defaultSlots)
	s.Lease = cmp.Or(s.Lease, 3*time.Second)
	s.Poll = cmp.Or(s.Poll, time.Second)
	s.Reconcile = cmp.Or(s.Reconcile, 10*time.Second)
	s.Positions = cmp.Or(s.Positions, 5*time.Second)
	return s
}

// Bus carries events.
type Bus interface {
	// Consume returns the runnable that passes events to step and publishes the events
	// that step returns. Runnables of one group share the events.
	Consume(group string, step service.Step) service.Runnable
	// Publish publishes events, and those of one run in order. It returns when they are
	// stored for all consumers.
	Publish(ctx context.Context, events ...event.Event) error
}

// Deps are the dependencies of the service.
type Deps struct {
	Bus     Bus
	Store   slots.Store
	Cluster launch.Cluster            // of the default engine
	Engines map[string]launch.Cluster // of each other engine
	Images  map[string]plan.Images    // by the key of the engine; without an entry, registries are not asked
	Token   func(run string) string   // returns the token of a run, for its pods
	Clock   func() time.Time          // nil means time.Now
	Log     *zap.Logger               // nil means no logs
}

// New returns the runnables of the service, by name. The names are unique among all
// services, so one process can run several services.
func New(s Settings, d Deps) map[string]service.Runnable {
	if d.Clock == nil {
		d.Clock = time.Now
	}
	if d.Log == nil {
		d.Log = zap.NewNop()
	}
	e := newExecutor(s.withDefaults(), d)
	parts := map[string]service.Runnable{
		"executor/fetched":  d.Bus.Consume("executor-fetched", service.On(e.onFetched)),
		"executor/retried":  d.Bus.Consume("executor-retried", service.On(e.onRetried)),
		"executor/commands": d.Bus.Consume("executor-commands", service.On(e.onCommand)),
		"executor/finished": d.Bus.Consume("executor-finished", service.Batch(64, e.onFinished)),
		"executor/admit":    e.scheduler.Run,
		"executor/unread":   e.deferred.Run,
	}
	maps.Copy(parts, e.launchers.runnables())
	return parts
}
