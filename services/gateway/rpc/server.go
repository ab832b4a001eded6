// Package rpc serves gRPC: it limits calls and messages, checks revisions of the API,
// answers for health and reflection, and turns errors into statuses. It has no handlers.
package rpc

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

	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// Settings are the limits of calls. Each must be greater than zero.
type Settings struct {
	CallTimeout time.Duration // maximum time of a call without a stream
	StopTimeout time.Duration // time for calls to end when the server stops
	MaxStreams  int           // concurrent streaming calls, half of them for one client
	MaxImports  int           // concurrent imports of runs
}

// Limits of one message.
const (
	maxRequest = 1 << 20  // bytes
	maxFrame   = 4 << 20  // bytes; a larger request is not read
	maxHeader  = 16 << 10 // bytes of a call's metadata
)

// MaxResponse is the maximum number of bytes of the items in a response; the whole
// response stays below 1 MiB.
const MaxResponse = 900 << 10

// Version is the version of the server.
type Version struct {
	Version string // empty means "devel"
	Commit  string
}

// Deps are the dependencies of a server.
type Deps struct {
	Register func(g grpc.ServiceRegistrar)   // adds the handlers
	Status   func(err error) error           // returns the status of a handler's error
	Ready    func(ctx context.Context) error // returns an error with the reason why calls would fail now; a nil func means always ready
	Version  Version
	Log      *zap.Logger
}

// server serves the calls of a gRPC server.
type server struct {
	settings Settings
	deps     Deps
	streams  *limiter
	imports  *limiter
}

// Serve returns the runnable that serves all of ls until its context is done, and
// closes them. The health service answers SERVING while calls can be expected to
// succeed. When the runnable stops, streams end with UNAVAILABLE, and clients continue
// with another server.
func Serve(settings Settings, d Deps, ls ...net.Listener) service.Runnable {
	s := &server{
		settings: settings, deps: d,
		streams: newLimiter("calls that stream", "gateway.api.max_streams", settings.MaxStreams, max(1, settings.MaxStreams/2)),
		imports: newLimiter("imports", "gateway.api.max_imports", settings.MaxImports, settings.MaxImports),
	}
	return func(ctx context.Context) error {
		streams, endStreams := context.WithCancel(context.WithoutCancel(ctx))
		defer endStreams()
		g, h := s.newGRPCServer(streams), health.NewServer()
		healthv1.RegisterHealthServer(g, h)
		d.Register(g)
		services := g.GetServiceInfo()
		reflection.Register(g)

		served := make(chan error, len(ls))
		for _, l := range ls {
			go func() { served <- serve(g, l) }()
		}
		watchDone := make(chan struct{})
		watchCtx, stopWatching := context.WithCancel(ctx)
		go func() { defer close(watchDone); s.watchHealth(watchCtx, h, services) }()
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

// watchHealth updates the answer of the health service, for the server and for each of
// its services.
func (s *server) watchHealth(ctx context.Context, h *health.Server, services map[string]grpc.ServiceInfo) {
	for {
		servingStatus, pause := healthv1.HealthCheckResponse_SERVING, readyInterval
		if err := s.checkReady(ctx); err != nil {
			servingStatus, pause = healthv1.HealthCheckResponse_NOT_SERVING, unreadyInterval
		}
		if ctx.Err() != nil {
			return
		}
		h.SetServingStatus("", servingStatus)
		for name := range services {
			h.SetServingStatus(name, servingStatus)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func (s *server) checkReady(ctx context.Context) error {
	if s.deps.Ready == nil {
		return nil
	}
	return s.deps.Ready(ctx)
}

func (s *server) newGRPCServer(streams context.Context) *grpc.Server {
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
			return s.deps.Version.unknownMethod(method)
		}),
	)
}

// checkRequest refuses a request that is too large or needs a newer revision of the
// API.
func (s *server) checkRequest(ctx context.Context, method string, req any) error {
	if m, ok := req.(proto.Message); ok && proto.Size(m) > maxRequest {
		return status.Errorf(codes.ResourceExhausted,
			"the request has %d bytes, %d at most; a descriptor has %d at most: name data and code in it instead of writing them into it",
			proto.Size(m), maxRequest, parser.MaxSize)
	}
	return s.deps.Version.checkRevision(method, metadata.ValueFromIncomingContext(ctx, baiv1.RevisionMetadata))
}

// interceptUnary handles a unary call: it checks the request and sets the deadline.
func (s *server) interceptUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
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
func (s *server) interceptStream(
	streams context.Context, srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler,
) (err error) {
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
func (s *server) acquireStream(ctx context.Context, method string) (release func(), err error) {
	if method == baiv1.TransferService_ImportRun_FullMethodName {
		return s.imports.acquire(clientHost(ctx))
	}
	return s.streams.acquire(clientHost(ctx))
}

// finishCall ends a call: it turns a panic into an INTERNAL error, and errors into
// statuses.
func (s *server) finishCall(method string, began time.Time, err *error) {
	if p := recover(); p != nil {
		s.deps.Log.Error("panic", zap.String("method", method), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
		*err = status.Error(codes.Internal, "the server has a fault: its log says more")
	}
	*err = s.deps.Status(*err)
	s.deps.Log.Debug("call", zap.String("method", method), zap.Duration("took", time.Since(began)), zap.Stringer("code", status.Code(*err)))
}
