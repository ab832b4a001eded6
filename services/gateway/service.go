// Package gateway serves the users of the platform: it accepts runs, projects their
// events into a state, and answers requests about them.
//
// It has these packages: submit (a request → bai.submitted), projection (events → runs
// in the store), catalog, artifact and bundle (stored descriptors, files of runs, code
// of users), schedule (repeated runs), set (runs of a sweep), analysis
// (comparisons, histories, baselines), alarm (incidents, mutes, notices), confirmation (runs that confirm
// incidents), archive (export and import of runs), api and data (the handlers of gRPC), rpc (the server that calls them) and rest (the same
// over HTTP, on the same port).
package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/gateway/alarm"
	"github.com/benchmark-ai/bai/services/gateway/analysis"
	"github.com/benchmark-ai/bai/services/gateway/api"
	"github.com/benchmark-ai/bai/services/gateway/archive"
	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/gateway/bundle"
	"github.com/benchmark-ai/bai/services/gateway/catalog"
	"github.com/benchmark-ai/bai/services/gateway/confirmation"
	"github.com/benchmark-ai/bai/services/gateway/data"
	"github.com/benchmark-ai/bai/services/gateway/preflight"
	"github.com/benchmark-ai/bai/services/gateway/projection"
	"github.com/benchmark-ai/bai/services/gateway/rest"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/gateway/schedule"
	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are the operator's settings. The zero value works.
type Settings struct {
	Submit     submit.Settings     `toml:"intake"`
	Projection projection.Settings `toml:"record"`
	API        api.Settings        `toml:"api"`

	REST        rest.Settings      `toml:"rest"`
	Descriptors catalog.Settings   `toml:"descriptors"`
	Artifacts   artifact.Settings  `toml:"artifacts"`
	Scripts     bundle.Settings    `toml:"scripts"`
	Preflight   preflight.Settings `toml:"preflight"`
	Schedules   schedule.Settings  `toml:"schedules"`
	Sets        set.Settings       `toml:"sets"`
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	return errors.Join(s.Submit.Validate(), s.Projection.Validate(), s.API.Validate(), s.REST.Validate(), s.Artifacts.Validate(),
		s.Scripts.Validate(), s.Schedules.Validate(), s.Sets.Validate())
}

// Bus carries events.
type Bus interface {
	// Consume returns the runnable that passes the events of a topic to step, and
	// publishes the events that step returns. Runnables of one group share the events.
	Consume(group string, step service.Step) service.Runnable
	// Publish returns when the events are stored for all consumers. After an error,
	// some of them may be stored.
	Publish(ctx context.Context, events ...event.Event) error
}

// Store stores runs, documents, samples, lines and points.
type Store interface {
	store.Docs
	store.Lister
	store.Runs
	DataStore
}

// DataStore stores the data of runs, and notifies of new ones.
type DataStore interface {
	store.Streams
	store.Points
	store.Notifier
}

// Deps are the dependencies of the service.
type Deps struct {
	Bus          Bus
	Store        Store
	Listener     net.Listener                     // listener of the API, for gRPC and HTTP
	Objects      Objects                          // stores files of runs and code; nil: the service has neither
	Source       catalog.Source                   // reads descriptors from other addresses; nil: only stored ones can be found
	Parser       parser.Parser                    // checks descriptors by the executor's settings
	Renderer     api.Renderer                     // nil: no descriptors are rendered
	Preflight    preflight.Deps                   // dependencies of preflight checks; without a Cluster there are no checks
	DatasetCache DatasetCache                     // manages stored data sets; nil: the service has no dataset cache
	Token        func(run string) string          // returns the token of a run; nil: runs have no tokens
	OpenAPI      []byte                           // the OpenAPI description of the HTTP API
	StorageFull  func() string                    // returns the reason why no run can be stored now, or ""; nil: there is always room
	Sync         func(ctx context.Context) error  // returns when earlier writes survive a power cut; nil: they always do
	Entropy      io.Reader                        // crypto/rand.Reader except in tests
	Receivers    notice.Receivers                 // receivers of notices of ends; nil: there are none
	Ready        func(ctx context.Context) error  // returns an error with the reason why calls would fail now; nil: they never fail
	Notes        func(ctx context.Context) string // returns a note for the readiness response, or ""; nil: there is no note
	Version      rpc.Version
	Log          *zap.Logger
}

// Objects stores content.
type Objects interface {
	artifact.Objects
	bundle.Objects
	rest.Objects
}

// DatasetCache lists, verifies, evicts and prefetches data sets.
type DatasetCache interface {
	data.Cache
	data.Prefetcher
}

// New returns the runnables of the service, by name. The names are unique among all
// services, so one process can run several services.
func New(s Settings, d Deps) map[string]service.Runnable {
	scripts := bundle.New(s.Scripts, d.Objects, d.Store, time.Now)
	ids := submit.NewIDs(d.Entropy)
	submitter := submit.New(s.Submit,
		submit.Deps{
			Store: d.Store, Bus: d.Bus, Scripts: scripts, Parser: d.Parser, IDs: ids, StorageFull: d.StorageFull,
			Sync: d.Sync, Now: time.Now, Log: d.Log,
		})
	setDeps := set.Deps{
		Store: d.Store, Submitter: submitter, Parser: d.Parser, NewID: ids.New, StorageFull: d.StorageFull, Sync: d.Sync,
		Receivers: d.Receivers, Holder: rand.Text(), Now: time.Now, Log: d.Log,
	}
	setRunner := set.NewRunner(s.Sets, setDeps)
	sets := set.New(setDeps, setRunner)
	scheduleDeps := schedule.Deps{
		Store: d.Store, Submitter: submitter, Sets: sets, Scripts: submitter, Bus: d.Bus, Holder: rand.Text(), Now: time.Now, Log: d.Log,
	}
	scheduleRunner := schedule.NewRunner(s.Schedules, scheduleDeps)
	confirmations := confirmation.NewRunner(confirmation.Deps{
		Store: d.Store, Submitter: submitter,
		Holder: rand.Text(), Now: time.Now, Log: d.Log,
	})
	files := artifact.New(s.Artifacts, d.Objects, d.Store, time.Now)
	server := api.New(s.API, api.Deps{
		Submitter: submitter, Store: d.Store, Catalog: catalog.New(s.Descriptors, d.Store, d.Source, d.Parser, time.Now),
		Renderer: d.Renderer, Artifacts: files,
		Preflight: newPreflight(s.Preflight, d.Preflight), Parser: d.Parser,
		Archiver: archive.New(archive.Deps{
			Store: d.Store, StorageFull: d.StorageFull, Artifacts: files, Names: submitter,
			Version: d.Version.Version, Now: time.Now,
		}),
		Scripts: scripts, Data: newDataServer(d.DatasetCache), Schedules: schedule.New(scheduleDeps, scheduleRunner.Wake), Sets: sets,
		Analyses: analysis.New(analysis.Deps{Store: d.Store, Sets: sets, RunByName: submitter.RunByName, Now: time.Now}),
		Alarms:   alarm.New(alarm.Deps{Store: d.Store, Receivers: d.Parser.Receivers, Now: time.Now}),
		Ready:    d.Ready, Version: d.Version, Log: d.Log,
	})
	http2, others, split := rest.Split(s.REST, d.Listener)
	inProcess := rest.NewInProcessListener()
	parts := map[string]service.Runnable{
		"gateway/outbox":    submitter.RunOutboxRelay,
		"gateway/schedules": scheduleRunner.Run,
		"gateway/sets":      setRunner.Run,
		"gateway/reconcile": projection.NewReconciler(s.Projection, d.Store, d.Bus, d.Log).Run,
		"gateway/port":      split,
		"gateway/api":       server.Serve(http2, inProcess),
		"gateway/rest": rest.Serve(s.REST,
			rest.Deps{
				API: inProcess, Files: files, Scripts: scripts, Objects: d.Objects, Runs: d.Store, Token: d.Token, Ready: d.Ready,
				Notes: d.Notes, OpenAPI: d.OpenAPI, Log: d.Log,
			}, others),
	}
	parts["gateway/confirmations"] = confirmations.Run
	ended := func(run store.Run) {
		setRunner.RunEnded(run)
		confirmations.RunEnded(run)
	}
	for _, step := range projection.NewProjector(d.Store, ended).Steps() {
		parts["gateway/record/"+step.Topic] = d.Bus.Consume("gateway", step)
	}
	return parts
}

// newPreflight returns the preflight checks, or nil without a cluster.
func newPreflight(s preflight.Settings, d preflight.Deps) api.Preflight { //nolint:ireturn // nil is none
	if d.Cluster == nil || d.Planner == nil {
		return nil
	}
	return preflight.New(s, d)
}

// newDataServer returns the handlers of data sets, or nil without a dataset cache.
func newDataServer(s DatasetCache) baiv1.DataServiceServer { //nolint:ireturn // nil is none
	if s == nil {
		return nil
	}
	return data.NewServer(s, s)
}
