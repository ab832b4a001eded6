// Package program is the common part of the programs of all services: they read their
// settings, open the bus and the store, and run their runnables until they are stopped.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/config"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/run"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/telemetry"
)

// Settings are the settings of every service.
type Settings struct {
	Health        string           // address of /healthz, /readyz and /metrics; empty means none
	Store         string           // path of the SQLite file, unless Elasticsearch is used
	Elasticsearch elastic.Settings // the store if it has addresses
	Log           run.Log
	Kafka         kafka.Settings
	Telemetry     telemetry.Settings

	// NoBus means that the program uses no broker, and so needs no key.
	NoBus bool `toml:"-"`
}

// Validate names every setting at fault.
func (s *Settings) Validate() error {
	errs := []error{s.Log.Validate(), s.Kafka.Validate(), s.Telemetry.Validate()}
	if !s.NoBus {
		errs = append(errs, s.Kafka.CheckKey())
	}
	switch elastic := len(s.Elasticsearch.Addresses) > 0; {
	case elastic && s.Store != "":
		errs = append(errs, errors.New("store, elasticsearch.addresses: there is one store: give one of them"))
	case elastic:
		errs = append(errs, s.Elasticsearch.Validate())
	case s.Store == "":
		errs = append(errs, errors.New("store: the path of the SQLite file is needed, or elasticsearch.addresses"))
	}
	return errors.Join(errs...)
}

// Shared returns the settings of every service.
func (s *Settings) Shared() *Settings { return s }

// Service is the settings type of one service, which embeds Settings.
type Service interface {
	config.Validator
	// Shared does the same as Settings.Shared.
	Shared() *Settings

	// Parts returns the runnables of the service.
	Parts(ctx context.Context, c *Common) (map[string]service.Runnable, error)
}

// dataStore is the part of a store that has data.
type dataStore interface {
	docStore
	runStore
	resultStore
}

// resultStore has all methods for the data of runs.
type resultStore interface {
	store.Streams
	store.Points
}

// docStore has all methods for documents.
type docStore interface {
	store.Docs
	store.Lister
}

// runStore has all methods for runs.
type runStore interface {
	store.Runs
	store.Counter
	store.Notifier
}

// Store has all methods of a store.
type Store interface {
	dataStore
	// Check returns the reason why the store cannot be used now, or nil.
	Check(ctx context.Context) error
	Close() error
}

// Common has the things that every service gets.
type Common struct {
	Bus    *kafka.Bus
	Store  Store
	Log    *zap.Logger
	Checks map[string]run.Check // checks on which readiness depends; a service may add its own

	// Incidents has incidents for searching; nil if the store has no such part.
	Incidents store.IncidentIndex

	telemetry *telemetry.Telemetry
	closers   []func() error
}

// Meter returns the telemetry of the process.
func (c *Common) Meter() *telemetry.Telemetry { return c.telemetry }

// OnClose calls do when the service has ended. The last function is called first.
func (c *Common) OnClose(do func() error) { c.closers = append(c.closers, do) }

// Main runs a service. After an error, the process exits with status 1.
func Main(name string, s Service) {
	if err := Run(context.Background(), name, os.Args[1:], s); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Run reads the settings file in args into s, and runs the service until ctx is done or
// a signal arrives.
func Run(ctx context.Context, name string, args []string, s Service) (err error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	path := flags.String("config", "/etc/bai/"+name+".toml", "TOML `file` with the settings")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := config.Load(*path, s); err != nil {
		return err
	}
	c := &Common{}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.open(ctx, name, s.Shared()); err != nil {
		return err
	}
	parts, err := s.Parts(ctx, c)
	if err != nil {
		return err
	}
	parts["health"] = run.Health(s.Shared().Health, c.Checks, c.telemetry.Handler())
	return run.UntilSignal(ctx, parts)
}

func (c *Common) open(ctx context.Context, name string, s *Settings) (err error) {
	if c.Log, err = s.Log.New(os.Stderr); err != nil {
		return err
	}
	if c.telemetry, err = telemetry.New(ctx, s.Telemetry, name, c.Log); err != nil {
		return err
	}
	c.OnClose(func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		return c.telemetry.Close(ctx)
	})
	s.Kafka.Source, s.Kafka.Meter, s.Kafka.Tracer = name, c.telemetry, c.telemetry
	opened, err := OpenStore(ctx, s.Store, s.Elasticsearch)
	if err != nil {
		return err
	}
	c.Store = c.telemetry.Store(opened)
	c.Incidents, _ = opened.(store.IncidentIndex)
	c.OnClose(c.Store.Close)
	if name == "gateway" { // one service reports the numbers of runs
		c.telemetry.Runs(c.Store)
	}
	s.Kafka.SignaturePolicy = kafka.SignaturePolicyStore{Docs: c.Store}
	if c.Bus, err = kafka.NewBus(s.Kafka, c.Log); err != nil {
		return err
	}
	c.OnClose(func() error { c.Bus.Close(); return nil })
	c.Checks = map[string]run.Check{"kafka": c.Bus.Ready, "store": c.Store.Check, "seals": Seals(c.Bus)}
	return nil
}

// Seals returns the check that reports topics on which messages without a signature are
// accepted.
func Seals(b *kafka.Bus) run.Check {
	return func(ctx context.Context) error {
		if text := b.UnsignedWarning(ctx); text != "" {
			return run.NoteError(text)
		}
		return nil
	}
}

// OpenStore opens the SQLite file at path or, if path is empty, Elasticsearch. It does
// not wait for Elasticsearch.
func OpenStore(ctx context.Context, path string, e elastic.Settings) (Store, error) { //nolint:ireturn // either
	if path == "" {
		return elastic.Open(e)
	}
	return sqlite.Open(ctx, path)
}

func (c *Common) close() error {
	var errs []error
	for _, do := range slices.Backward(c.closers) {
		errs = append(errs, do())
	}
	return errors.Join(errs...)
}
