// Package api has the handlers of the gRPC services of the platform: bai.v1.RunService
// and the services of bai.v1 about descriptors and output. The packages below have the
// services about alarms, analyses, schedules and sets. Package rpc serves all of them.
//
// The rules for callers and for pages of lists are in request; status.go turns every
// error into a status.
package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/alarm"
	"github.com/benchmark-ai/bai/services/gateway/analysis"
	"github.com/benchmark-ai/bai/services/gateway/api/alarms"
	"github.com/benchmark-ai/bai/services/gateway/api/analyses"
	"github.com/benchmark-ai/bai/services/gateway/api/schedules"
	"github.com/benchmark-ai/bai/services/gateway/api/sets"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/gateway/schedule"
	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are the operator's settings. The zero value works.
type Settings struct {
	CallTimeout time.Duration `toml:"call_timeout"` // maximum time of a call without a stream; zero means 30s
	LogsTimeout time.Duration `toml:"logs_timeout"` // time after a run's end for which log followers wait for missing lines; zero means 30s
	StopTimeout time.Duration `toml:"stop_timeout"` // time for calls to end when the server stops; zero means 3s
	MaxStreams  int           `toml:"max_streams"`  // concurrent streaming calls, half of them for one client; zero means 1000
	MaxImports  int           `toml:"max_imports"`  // concurrent imports, each with up to 200 MiB of memory; zero means 2
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"call_timeout", s.CallTimeout}, {"logs_timeout", s.LogsTimeout}, {"stop_timeout", s.StopTimeout}} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("gateway.api.%s: must not be negative", d.name))
		}
	}
	if s.MaxStreams < 0 {
		errs = append(errs, errors.New("gateway.api.max_streams: must not be negative"))
	}
	if s.MaxImports < 0 {
		errs = append(errs, errors.New("gateway.api.max_imports: must not be negative"))
	}
	return errors.Join(errs...)
}

// Submitter accepts runs.
type Submitter interface {
	// Submit does the same as submit.Submitter.Submit.
	Submit(ctx context.Context, req submit.Request) (submit.Accepted, error)
	// Cancel does the same as submit.Submitter.Cancel.
	Cancel(ctx context.Context, run store.Run, by string) error
	// RunByName does the same as submit.Submitter.RunByName.
	RunByName(ctx context.Context, owner, name string) (run string, err error)
}

// Runs reads runs. It is a part of store.Runs.
type Runs interface {
	Run(ctx context.Context, id string) (store.Run, error)
	Runs(ctx context.Context, f store.RunFilter, token string, limit int) (runs []store.Run, next string, err error)
	Changes(ctx context.Context, run string, after int64, limit int) ([]store.Change, error)
}

// Store is the store that the server reads.
type Store interface {
	Runs
	store.Reader
	store.Notifier
	// Doc does the same as store.Docs.Doc.
	Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error)
}

// Deps are the dependencies of a Server.
type Deps struct {
	Submitter Submitter
	Store     Store
	Catalog   Catalog
	Renderer  Renderer // nil: the server renders no descriptors
	Parser    parser.Parser
	Preflight Preflight // nil: the server has no preflight checks
	Artifacts Artifacts
	Scripts   Scripts
	Data      baiv1.DataServiceServer         // nil: the server has no dataset cache
	Archiver  Archiver                        // nil: this server neither exports nor imports runs
	Schedules *schedule.Schedules             // nil: this server has no schedules
	Sets      *set.Sets                       // nil: this server has no sets
	Alarms    *alarm.Alarms                   // nil: this server has no incidents
	Analyses  *analysis.Analyses              // nil: this server has no comparisons, histories and baselines
	Ready     func(ctx context.Context) error // returns an error with the reason why calls would fail now; a nil func means always ready
	Version   rpc.Version
	Log       *zap.Logger
}

// Server implements bai.v1.RunService.
type Server struct {
	baiv1.UnimplementedRunServiceServer

	settings    Settings
	submitter   Submitter
	store       Store
	artifacts   Artifacts
	descriptors *descriptorServer
	preflight   *preflightServer
	scripts     *scriptServer
	data        baiv1.DataServiceServer
	archiver    Archiver
	schedules   *schedule.Schedules
	sets        *set.Sets
	alarms      *alarm.Alarms
	analyses    *analysis.Analyses
	ready       func(ctx context.Context) error
	version     rpc.Version
	rpc         rpc.Settings
	log         *zap.Logger
}

// New returns a Server.
func New(s Settings, d Deps) *Server {
	s.CallTimeout = cmp.Or(s.CallTimeout, 30*time.Second)
	s.LogsTimeout = cmp.Or(s.LogsTimeout, 30*time.Second)
	s.StopTimeout = cmp.Or(s.StopTimeout, 3*time.Second)
	s.MaxStreams, s.MaxImports = cmp.Or(s.MaxStreams, 1000), cmp.Or(s.MaxImports, 2)
	d.Version.Version = cmp.Or(d.Version.Version, "devel")
	return &Server{
		settings: s, submitter: d.Submitter, store: d.Store, artifacts: d.Artifacts,
		descriptors: &descriptorServer{catalog: d.Catalog, renderer: d.Renderer, parser: d.Parser},
		preflight:   &preflightServer{preflight: d.Preflight, parser: d.Parser},
		scripts:     &scriptServer{scripts: d.Scripts, idleTimeout: s.CallTimeout}, data: d.Data, archiver: d.Archiver,
		schedules: d.Schedules, sets: d.Sets, alarms: d.Alarms, analyses: d.Analyses, ready: d.Ready, version: d.Version, log: d.Log,
		rpc: rpc.Settings{CallTimeout: s.CallTimeout, StopTimeout: s.StopTimeout, MaxStreams: s.MaxStreams, MaxImports: s.MaxImports},
	}
}

// Serve returns the runnable that serves all of ls until its context is done, and
// closes them: see rpc.Serve.
func (s *Server) Serve(ls ...net.Listener) service.Runnable {
	return rpc.Serve(s.rpc, rpc.Deps{Register: s.register, Status: statusOf, Ready: s.ready, Version: s.version, Log: s.log}, ls...)
}

// register adds the handlers of all services that this server has.
func (s *Server) register(g grpc.ServiceRegistrar) {
	baiv1.RegisterRunServiceServer(g, s)
	baiv1.RegisterDescriptorServiceServer(g, s.descriptors)
	baiv1.RegisterPreflightServiceServer(g, s.preflight)
	baiv1.RegisterScriptServiceServer(g, s.scripts)
	baiv1.RegisterResultServiceServer(g, &resultServer{runs: s})
	if s.data != nil {
		baiv1.RegisterDataServiceServer(g, s.data)
	}
	if s.schedules != nil {
		baiv1.RegisterScheduleServiceServer(g, &schedules.Server{Schedules: s.schedules})
	}
	if s.sets != nil {
		baiv1.RegisterSetServiceServer(g, &sets.Server{Sets: s.sets})
	}
	if s.analyses != nil {
		baiv1.RegisterAnalysisServiceServer(g, &analyses.Server{Analyses: s.analyses})
		baiv1.RegisterBaselineServiceServer(g, &analyses.Baselines{Analyses: s.analyses})
	}
	if s.alarms != nil {
		baiv1.RegisterAlarmServiceServer(g, &alarms.Server{Alarms: s.alarms})
	}
	if s.archiver != nil {
		baiv1.RegisterTransferServiceServer(g, &transferServer{runs: s, archiver: s.archiver, idleTimeout: s.settings.CallTimeout})
	}
}
