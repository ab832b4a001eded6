// Package rest serves the API over HTTP/1.1 with JSON, beside gRPC on one port:
// each request becomes a call of the gRPC server within the process, so that
// limits, deadlines and errors are the same. Files travel as they are.
package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/artifact"
	gen "github.com/benchmark-ai/bai/services/gateway/rest/gen/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are what an operator may choose. The zero value works.
type Settings struct {
	Hosts       []string      `toml:"hosts"`        // names by which clients call the server beside its addresses and localhost; none means any, but over loopback none
	Stall       time.Duration `toml:"stall"`        // in which a client must send or take something; zero means 30s
	StopTimeout time.Duration `toml:"stop_timeout"` // how long requests may take to end when the server stops; zero means 3s

	MaxConnections          int `toml:"max_connections"`            // open at a time, also those of gRPC; zero means 4096
	MaxConnectionsPerClient int `toml:"max_connections_per_client"` // of one address; zero means half of max_connections
	MaxTransfers            int `toml:"max_transfers"`              // files, code and data that are sent or taken at a time; zero means 256
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	if s.Stall < 0 {
		errs = append(errs, errors.New("gateway.rest.stall: must not be negative"))
	}
	if s.StopTimeout < 0 {
		errs = append(errs, errors.New("gateway.rest.stop_timeout: must not be negative"))
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"max_connections", s.MaxConnections}, {"max_connections_per_client", s.MaxConnectionsPerClient}, {"max_transfers", s.MaxTransfers}} {
		if n.value < 0 {
			errs = append(errs, fmt.Errorf("gateway.rest.%s: must not be negative", n.name))
		}
	}
	return errors.Join(errs...)
}

// headerTimeout is how long a client may take to say what it wants.
func (s Settings) headerTimeout() time.Duration {
	return min(cmp.Or(s.Stall, 30*time.Second), 10*time.Second)
}

// Limits of one request.
const (
	maxBody   = 1536 << 10 // bytes; what gRPC takes, in base64
	maxHeader = 32 << 10   // bytes
)

// retryAfter is how many seconds later a client may try again that was refused for
// the number of others, as the API says it, too.
const retryAfter = "5"

// Files keeps what runs leave.
type Files interface {
	// Put is that of artifact.Repository.
	Put(ctx context.Context, run, name string, size int64, body io.Reader) (f artifact.File, repeated bool, err error)
}

// Runs is what is known of runs, and of what they wrote.
type Runs interface {
	// Run returns a run as last recorded, or store.ErrNotFound.
	Run(ctx context.Context, id string) (store.Run, error)
	// Streams returns what is stored of each of a run's origins.
	Streams(ctx context.Context, run string) ([]store.Stream, error)
}

// Deps are what a Server needs from others.
type Deps struct {
	API     *InProcessListener // where the gRPC server accepts
	Files   Files
	Scripts Scripts
	Objects Objects                          // that pods read; nil: none are to be had here
	Runs    Runs                             // what is known of runs
	Token   func(run string) string          // the right to speak for a run; empty where there is none
	Ready   func(ctx context.Context) error  // says why calls would fail now; nil: they would not
	Notes   func(ctx context.Context) string // what who asks for readiness is to know, empty for nothing; nil: there is never anything
	OpenAPI []byte                           // the description of what is served
	Log     *zap.Logger
}

// server serves HTTP.
type server struct {
	settings Settings
	deps     Deps
	runs     baiv1.RunServiceClient
	json     *runtime.ServeMux

	transfers chan struct{} // one for each that is under way
}

// Serve returns the part that serves l until it is told to stop. It closes l.
// Requests still under way may end by themselves for a moment, then are cut.
func Serve(s Settings, d Deps, l net.Listener) service.Runnable {
	s.Stall = cmp.Or(s.Stall, 30*time.Second)
	s.StopTimeout = cmp.Or(s.StopTimeout, 3*time.Second)
	return func(ctx context.Context) error {
		conn, err := grpc.NewClient("passthrough:///inside", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return d.API.Dial(ctx) }))
		if err != nil {
			return fmt.Errorf("connect HTTP to the API: %w", err)
		}
		server := &server{settings: s, deps: d, runs: baiv1.NewRunServiceClient(conn), transfers: make(chan struct{}, cmp.Or(s.MaxTransfers, 256))}
		server.json = server.newMux()
		err = errors.Join(gen.RegisterRunServiceHandlerClient(ctx, server.json, server.runs),
			gen.RegisterResultServiceHandlerClient(ctx, server.json, baiv1.NewResultServiceClient(conn)),
			gen.RegisterDescriptorServiceHandlerClient(ctx, server.json, baiv1.NewDescriptorServiceClient(conn)),
			gen.RegisterPreflightServiceHandlerClient(ctx, server.json, baiv1.NewPreflightServiceClient(conn)),
			gen.RegisterScriptServiceHandlerClient(ctx, server.json, baiv1.NewScriptServiceClient(conn)),
			gen.RegisterScheduleServiceHandlerClient(ctx, server.json, baiv1.NewScheduleServiceClient(conn)),
			gen.RegisterDataServiceHandlerClient(ctx, server.json, baiv1.NewDataServiceClient(conn)))
		if err == nil {
			err = server.serve(ctx, l)
		}
		return errors.Join(err, conn.Close())
	}
}

func (s *server) serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: s.settings.headerTimeout(), IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader,
		ErrorLog: zap.NewStdLog(s.deps.Log.Named("http")),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.settings.StopTimeout)
		defer cancel()
		if server.Shutdown(shutdownCtx) != nil {
			_ = server.Close() // cuts what is left
		}
		err = <-served
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
}

// newMux returns the multiplexer that turns requests into calls.
func (s *server) newMux() *runtime.ServeMux {
	return runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, &marshaler{}),
		runtime.WithMarshalerOption(typeTOML, &tomlMarshaler{}),
		runtime.SetQueryParameterParser(&strictQuery{}),
		runtime.WithIncomingHeaderMatcher(func(header string) (string, bool) {
			switch header {
			case "Bai-User":
				return baiv1.UserMetadata, true
			case "Bai-Revision":
				return baiv1.RevisionMetadata, true
			}
			return "", false
		}),
		runtime.WithOutgoingHeaderMatcher(func(string) (string, bool) { return "", false }),
		runtime.WithOutgoingTrailerMatcher(func(string) (string, bool) { return "", false }),
		runtime.WithDisablePathLengthFallback(),
		runtime.WithMiddlewares(answersProbe),
		runtime.WithRoutingErrorHandler(s.routingError),
	)
}

// handler answers every request.
func (s *server) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		w = &deadlineWriter{ResponseWriter: w, control: http.NewResponseController(w), timeout: s.settings.Stall}
		if reason := originOf(r).denyReason(s.settings.Hosts); reason != "" && !fromPod(r) {
			s.writeError(w, r, http.StatusForbidden, codes.PermissionDenied, reason)
			return
		}
		s.route(w, r)
		s.deps.Log.Debug("request", zap.String("method", r.Method), zap.String("path", r.URL.Path), zap.Duration("took", time.Since(began)))
	})
}

// fromPod reports whether a request is one that no page of a browser's can make
// count: it needs the token of a run. Pods may call the server by any name.
func fromPod(r *http.Request) bool {
	_, _, isFile := filePath(r.URL.Path)
	_, _, isObject := objectPath(r.URL.Path)
	return isFile && r.Method == http.MethodPut || isObject && r.Method == http.MethodGet
}

// originOf returns what a request says of where it comes from.
func originOf(r *http.Request) requestOrigin {
	a := requestOrigin{Host: r.Host, Origin: r.Header.Get("Origin"), Site: r.Header.Get("Sec-Fetch-Site")}
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if ap, err := netip.ParseAddrPort(addr.String()); err == nil {
			a.Local = ap.Addr()
		}
	}
	return a
}

// route gives a request to the handler of its path, or to the call of the API.
func (s *server) route(w http.ResponseWriter, r *http.Request) {
	if handle := s.handlerOf(r); handle != nil {
		handle(w, r)
		return
	}
	s.serveAPI(w, r)
}

// handlerOf returns the handler of a request that is no call of the API; nil for
// one that is, or that nothing answers.
func (s *server) handlerOf(r *http.Request) http.HandlerFunc {
	run, name, isFile := filePath(r.URL.Path)
	digest, isScript := scriptPath(r.URL.Path)
	needs, key, isObject := objectPath(r.URL.Path)
	switch {
	case isObject && r.Method == http.MethodGet:
		return func(w http.ResponseWriter, r *http.Request) { s.getObject(w, r, needs, key) }
	case isScript && r.Method == http.MethodPut:
		return s.limitTransfers(func(w http.ResponseWriter, r *http.Request) { s.putScript(w, r, digest) })
	case isFile && r.Method == http.MethodPut:
		return s.limitTransfers(func(w http.ResponseWriter, r *http.Request) { s.putArtifact(w, r, run, name) })
	case isFile && isRead(r.Method):
		return s.limitTransfers(func(w http.ResponseWriter, r *http.Request) { s.getArtifact(w, r, run, name) })
	case r.URL.Path == "/healthz" && isRead(r.Method):
		return func(w http.ResponseWriter, _ *http.Request) { s.writeText(w, http.StatusOK, "ok") }
	case r.URL.Path == "/readyz" && isRead(r.Method):
		return s.ready
	case r.URL.Path == "/v1/openapi.json" && isRead(r.Method):
		return s.openAPI
	}
	return nil
}

// openAPI answers with the description of the API.
func (s *server) openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", typeJSON)
	_, _ = w.Write(s.deps.OpenAPI) // a client that is gone has nothing to be told
}

// limitTransfers returns a handler that sends or takes bytes, unless too many others do
// so already.
func (s *server) limitTransfers(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.transfers <- struct{}{}:
			defer func() { <-s.transfers }()
			handle(w, r)
		default:
			w.Header().Set("Connection", "close") // the body is not read
			w.Header().Set("Retry-After", retryAfter)
			s.writeError(w, r, http.StatusServiceUnavailable, codes.ResourceExhausted,
				fmt.Sprintf("the gateway sends and takes %d files already (gateway.rest.max_transfers): try again in %s s", cap(s.transfers), retryAfter))
		}
	}
}

// serveAPI answers a request that is a call of the API.
func (s *server) serveAPI(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && s.isAPICall(r) && !s.readBody(w, r) {
		return
	}
	s.json.ServeHTTP(w, r)
}

func (s *server) ready(w http.ResponseWriter, r *http.Request) {
	if s.deps.Ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		if err := s.deps.Ready(ctx); err != nil {
			s.writeText(w, http.StatusServiceUnavailable, err.Error())
			return
		}
	}
	text := "ready"
	if s.deps.Notes != nil {
		if note := s.deps.Notes(r.Context()); note != "" {
			text += "\n" + note
		}
	}
	s.writeText(w, http.StatusOK, text)
}

func (s *server) writeText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, text) // a client that is gone has nothing to be told
}

// writeError answers with an error in the form of every other.
func (s *server) writeError(w http.ResponseWriter, r *http.Request, code int, word codes.Code, message string) {
	runtime.HTTPError(r.Context(), s.json, &marshaler{}, w, r, &runtime.HTTPStatusError{HTTPStatus: code, Err: status.Error(word, message)})
}
