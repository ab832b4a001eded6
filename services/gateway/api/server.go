// Package api has the handlers of all gRPC services of the platform: bai.v1.RunService
// and the other services of bai.v1, with the standard health service and reflection.
//
// The rule for callers is in caller.go, that for pages in page.go; status.go turns
// every error into a status.
package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/benchmark-ai/bai/descriptors"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
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

// Limits of one message.
const (
	maxRequest  = 1 << 20   // bytes
	maxFrame    = 4 << 20   // bytes; a larger request is not read
	maxHeader   = 16 << 10  // bytes of a call's metadata
	maxResponse = 900 << 10 // bytes of the items in a response; the whole response stays below 1 MiB
)

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

// Version is the version of the server.
type Version struct {
	Version string // empty means "devel"
	Commit  string
}

// Deps are the dependencies of a Server.
type Deps struct {
	Submitter Submitter
	Store     Store
	Catalog   Catalog
	Renderer  Renderer // nil: the server renders no descriptors
	Parser    descriptors.Parser
	Preflight Preflight // nil: the server has no preflight checks
	Artifacts Artifacts
	Scripts   Scripts
	Data      baiv1.DataServiceServer         // nil: the server has no dataset cache
	Archiver  Archiver                        // nil: this server neither exports nor imports runs
	Schedules *schedule.Schedules             // nil: this server has no schedules
	Sets      *set.Sets                       // nil: this server has no sets
	Ready     func(ctx context.Context) error // returns an error with the reason why calls would fail now; a nil func means always ready
	Version   Version
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
	ready       func(ctx context.Context) error
	version     Version
	streams     *limiter
	imports     *limiter
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
		settings: s, submitter: d.Submitter, store: d.Store, artifacts: d.Artifacts, descriptors: &descriptorServer{catalog: d.Catalog, renderer: d.Renderer, parser: d.Parser},
		preflight: &preflightServer{preflight: d.Preflight, parser: d.Parser},
		scripts:   &scriptServer{scripts: d.Scripts, idleTimeout: s.CallTimeout}, data: d.Data, archiver: d.Archiver, schedules: d.Schedules, sets: d.Sets, ready: d.Ready, version: d.Version, log: d.Log,
		streams: newLimiter("calls that stream", "gateway.api.max_streams", s.MaxStreams, max(1, s.MaxStreams/2)),
		imports: newLimiter("imports", "gateway.api.max_imports", s.MaxImports, s.MaxImports),
	}
}

// Serve returns the runnable that serves all of ls until its context is done, and
// closes them. The health service answers SERVING while calls can be expected to
// succeed. When the runnable stops, streams end with UNAVAILABLE, and clients continue
// with another server.
func (s *Server) Serve(ls ...net.Listener) service.Runnable {
	return func(ctx context.Context) error {
		streams, endStreams := context.WithCancel(context.WithoutCancel(ctx))
		defer endStreams()
		g, h := s.newGRPCServer(streams), health.NewServer()
		healthv1.RegisterHealthServer(g, h)
		baiv1.RegisterRunServiceServer(g, s)
		baiv1.RegisterDescriptorServiceServer(g, s.descriptors)
		baiv1.RegisterPreflightServiceServer(g, s.preflight)
		baiv1.RegisterScriptServiceServer(g, s.scripts)
		if s.data != nil {
			baiv1.RegisterDataServiceServer(g, s.data)
		}
		if s.schedules != nil {
			baiv1.RegisterScheduleServiceServer(g, &scheduleServer{schedules: s.schedules})
		}
		if s.sets != nil {
			baiv1.RegisterSetServiceServer(g, &setServer{sets: s.sets})
		}
		if s.archiver != nil {
			baiv1.RegisterTransferServiceServer(g, &transferServer{runs: s, archiver: s.archiver, idleTimeout: s.settings.CallTimeout})
		}
		baiv1.RegisterResultServiceServer(g, &resultServer{runs: s})
		reflection.Register(g)

		served := make(chan error, len(ls))
		for _, l := range ls {
			go func() { served <- serve(g, l) }()
		}
		watchDone := make(chan struct{})
		watchCtx, stopWatching := context.WithCancel(ctx)
		go func() { defer close(watchDone); s.watchHealth(watchCtx, h) }()
		defer func() { stopWatching(); <-watchDone }()

		var first error
		remaining := len(ls)
		select {
		case first = <-served:
			remaining--
		case <-ctx.Done():
		}
		h.Shutdown()
		endStreams()
		force := time.AfterFunc(s.settings.StopTimeout, g.Stop)
		defer force.Stop()
		g.GracefulStop()
		for range remaining {
			first = cmp.Or(first, <-served) // nil after a stop
		}
		return first
	}
}

// serve serves until the server is stopped. The server may have been stopped before.
func serve(g *grpc.Server, l net.Listener) error {
	if err := g.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve gRPC on %s: %w", l.Addr(), err)
	}
	return nil
}

var errStopping = status.Error(codes.Unavailable, "the server is stopping: call again")

// Times between two checks of whether the server is ready.
const (
	unreadyInterval = 100 * time.Millisecond
	readyInterval   = 5 * time.Second
)

// watchHealth updates the answer of the health service.
func (s *Server) watchHealth(ctx context.Context, h *health.Server) {
	for {
		servingStatus, pause := healthv1.HealthCheckResponse_SERVING, readyInterval
		if err := s.checkReady(ctx); err != nil {
			servingStatus, pause = healthv1.HealthCheckResponse_NOT_SERVING, unreadyInterval
		}
		if ctx.Err() != nil {
			return
		}
		h.SetServingStatus("", servingStatus)
		h.SetServingStatus(baiv1.RunService_ServiceDesc.ServiceName, servingStatus)
		h.SetServingStatus(baiv1.DescriptorService_ServiceDesc.ServiceName, servingStatus)
		h.SetServingStatus(baiv1.PreflightService_ServiceDesc.ServiceName, servingStatus)
		h.SetServingStatus(baiv1.ScriptService_ServiceDesc.ServiceName, servingStatus)
		h.SetServingStatus(baiv1.ResultService_ServiceDesc.ServiceName, servingStatus)
		if s.data != nil {
			h.SetServingStatus(baiv1.DataService_ServiceDesc.ServiceName, servingStatus)
		}
		if s.archiver != nil {
			h.SetServingStatus(baiv1.TransferService_ServiceDesc.ServiceName, servingStatus)
		}
		if s.schedules != nil {
			h.SetServingStatus(baiv1.ScheduleService_ServiceDesc.ServiceName, servingStatus)
		}
		if s.sets != nil {
			h.SetServingStatus(baiv1.SetService_ServiceDesc.ServiceName, servingStatus)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func (s *Server) checkReady(ctx context.Context) error {
	if s.ready == nil {
		return nil
	}
	return s.ready(ctx)
}

func (s *Server) newGRPCServer(streams context.Context) *grpc.Server {
	return grpc.NewServer(
		grpc.MaxRecvMsgSize(maxFrame),
		grpc.MaxHeaderListSize(maxHeader),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.ConnectionTimeout(10*time.Second),
		grpc.UnaryInterceptor(s.interceptUnary),
		grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			return s.interceptStream(streams, srv, ss, info, next)
		}),
		grpc.UnknownServiceHandler(func(_ any, ss grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(ss)
			return s.version.unknownMethod(method)
		}),
	)
}

// checkRequest refuses a request that is too large or needs a newer revision of the
// API.
func (s *Server) checkRequest(ctx context.Context, method string, req any) error {
	if m, ok := req.(proto.Message); ok && proto.Size(m) > maxRequest {
		return status.Errorf(codes.ResourceExhausted, "the request has %d bytes, %d at most; a descriptor has %d at most: name data and code in it instead of writing them into it", proto.Size(m), maxRequest, descriptors.MaxSize)
	}
	return s.version.checkRevision(method, metadata.ValueFromIncomingContext(ctx, baiv1.RevisionMetadata))
}

// interceptUnary handles a unary call: it checks the request and sets the deadline.
func (s *Server) interceptUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	defer s.finishCall(info.FullMethod, time.Now(), &err)
	if err := s.checkRequest(ctx, info.FullMethod, req); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.settings.CallTimeout)
	defer cancel()
	return next(ctx, req)
}

// stoppableStream is a stream whose context also ends when the server stops.
type stoppableStream struct {
	grpc.ServerStream

	ctx context.Context //nolint:containedctx // gRPC hands contexts of streams over so
}

// Context implements grpc.ServerStream.
func (b stoppableStream) Context() context.Context { return b.ctx }

// interceptStream handles a streaming call, which ends early if the context streams
// ends.
func (s *Server) interceptStream(streams context.Context, srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer s.finishCall(info.FullMethod, time.Now(), &err)
	ctx, cancel := context.WithCancel(ss.Context())
	defer cancel()
	defer context.AfterFunc(streams, cancel)()
	if err := s.checkRequest(ctx, info.FullMethod, nil); err != nil { //nolint:contextcheck // it is the stream's
		return err
	}
	release, err := s.acquireStream(ctx, info.FullMethod) //nolint:contextcheck // it is the stream's
	if err != nil {
		return err
	}
	defer release()
	err = next(srv, stoppableStream{ss, ctx})
	if err != nil && streams.Err() != nil {
		return errStopping
	}
	return err
}

// acquireStream counts a streaming call against the limit of imports or of streams.
func (s *Server) acquireStream(ctx context.Context, method string) (release func(), err error) {
	if method == baiv1.TransferService_ImportRun_FullMethodName {
		return s.imports.acquire(clientHost(ctx))
	}
	return s.streams.acquire(clientHost(ctx))
}

// finishCall ends a call: it turns a panic into an INTERNAL error, and errors into
// statuses.
func (s *Server) finishCall(method string, began time.Time, err *error) {
	if p := recover(); p != nil {
		s.log.Error("panic", zap.String("method", method), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
		*err = status.Error(codes.Internal, "the server has a fault: its log says more")
	}
	*err = statusOf(*err)
	s.log.Debug("call", zap.String("method", method), zap.Duration("took", time.Since(began)), zap.Stringer("code", status.Code(*err)))
}
