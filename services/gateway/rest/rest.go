// Package rest serves the API over HTTP/1.1 with JSON, on the same port as gRPC. Each
// request becomes a call of the gRPC server in this process, so limits, deadlines and
// errors are the same. Files are sent as plain bytes.
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

// Settings are the operator's settings. The zero value works.
type Settings struct {
	// Hosts is the list of names by which clients call the server, besides its addresses and localhost;
	// empty means any name, but none over loopback.
	Hosts       []string      `toml:"hosts"`
	Stall       time.Duration `toml:"stall"`        // time within which a client must send or receive something; zero means 30s
	StopTimeout time.Duration `toml:"stop_timeout"` // time for requests to end when the server stops; zero means 3s

	MaxConnections          int `toml:"max_connections"`            // open connections, also those of gRPC; zero means 4096
	MaxConnectionsPerClient int `toml:"max_connections_per_client"` // open connections of one address; zero means half of max_connections
	MaxTransfers            int `toml:"max_transfers"`              // concurrent transfers of files, code and data; zero means 256
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

// headerTimeout returns how long a client may take to send the header of a request.
func (s Settings) headerTimeout() time.Duration {
	return min(cmp.Or(s.Stall, 30*time.Second), 10*time.Second)
}

// Limits of one request.
const (
	maxBody   = 1536 << 10 // bytes; the limit of gRPC, in base64
	maxHeader = 32 << 10   // bytes
)

// retryAfter is the number of seconds after which a client that exceeded a limit may
// try again. The gRPC API uses the same time.
const retryAfter = "5"

// Files stores the files of runs.
type Files interface {
	// Put does the same as artifact.Repository.Put.
	Put(ctx context.Context, run, name string, size int64, body io.Reader) (f artifact.File, repeated bool, err error)
}

// Runs reads runs and the state of their streams.
type Runs interface {
	// Run returns the projection of a run, or store.ErrNotFound.
	Run(ctx context.Context, id string) (store.Run, error)
	// Streams returns the state of each stream of a run.
	Streams(ctx context.Context, run string) ([]store.Stream, error)
}

// Deps are the dependencies of a Server.
type Deps struct {
	API     *InProcessListener // listener of the gRPC server
	Files   Files
	Scripts Scripts
	Objects Objects                          // objects for pods; nil: there is no object store
	Runs    Runs                             // reads runs
	Token   func(run string) string          // returns the token of a run; empty if the run has none
	Ready   func(ctx context.Context) error  // returns an error with the reason why calls would fail now; a nil func means always ready
	Notes   func(ctx context.Context) string // returns a note for the readiness response, or ""; nil: there is no note
	OpenAPI []byte                           // the OpenAPI description of the API
	Log     *zap.Logger
}

// server serves HTTP.
type server struct {
	settings Settings
	deps     Deps
	runs     baiv1.RunServiceClient
	json     *runtime.ServeMux

	transfers chan struct{} // one element for each transfer in progress
}

// Serve returns the runnable that serves l until its context is done, and closes l.
// Requests in progress may finish for Settings.StopTimeout, and are then cut.
func Serve(s Settings, d Deps, l net.Listener) service.Runnable {
	s.Stall = cmp.Or(s.Stall, 30*time.Second)
	s.StopTimeout = cmp.Or(s.StopTimeout, 3*time.Second)
	return func(ctx context.Context) error {
		conn, err := grpc.NewClient("passthrough:///inside", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return d.API.Dial(ctx) }))
		if err != nil {
			return fmt.Errorf("connect HTTP to the API: %w", err)
		}
		server := &server{
			settings: s, deps: d, runs: baiv1.NewRunServiceClient(conn),
			transfers: make(chan struct{}, cmp.Or(s.MaxTransfers, 256)),
		}
		server.json = server.newMux()
		err = errors.Join(gen.RegisterRunServiceHandlerClient(ctx, server.json, server.runs),
			gen.RegisterResultServiceHandlerClient(ctx, server.json, baiv1.NewResultServiceClient(conn)),
			gen.RegisterDescriptorServiceHandlerClient(ctx, server.json, baiv1.NewDescriptorServiceClient(conn)),
			gen.RegisterPreflightServiceHandlerClient(ctx, server.json, baiv1.NewPreflightServiceClient(conn)),
			gen.RegisterScriptServiceHandlerClient(ctx, server.json, baiv1.NewScriptServiceClient(conn)),
			gen.RegisterScheduleServiceHandlerClient(ctx, server.json, baiv1.NewScheduleServiceClient(conn)),
			gen.RegisterSetServiceHandlerClient(ctx, server.json, baiv1.NewSetServiceClient(conn)),
			gen.RegisterAnalysisServiceHandlerClient(ctx, server.json, baiv1.NewAnalysisServiceClient(conn)),
			gen.RegisterBaselineServiceHandlerClient(ctx, server.json, baiv1.NewBaselineServiceClient(conn)),
			gen.RegisterAlarmServiceHandlerClient(ctx, server.json, baiv1.NewAlarmServiceClient(conn)),
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
			_ = server.Close() // cuts the remaining requests
		}
		err = <-served
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
}

// newMux returns the multiplexer that turns requests into gRPC calls.
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

// handler returns the handler of every request.
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

// fromPod reports whether a request needs the token of a run. A page in a browser has
// no such token, so pods may call the server by any name.
func fromPod(r *http.Request) bool {
	_, _, isFile := filePath(r.URL.Path)
	_, _, isObject := objectPath(r.URL.Path)
	return isFile && r.Method == http.MethodPut || isObject && r.Method == http.MethodGet
}

// originOf returns the origin of a request.
func originOf(r *http.Request) requestOrigin {
	a := requestOrigin{Host: r.Host, Origin: r.Header.Get("Origin"), Site: r.Header.Get("Sec-Fetch-Site")}
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if ap, err := netip.ParseAddrPort(addr.String()); err == nil {
			a.Local = ap.Addr()
		}
	}
	return a
}

// route passes a request to the handler of its path, or to the API.
func (s *server) route(w http.ResponseWriter, r *http.Request) {
	if handle := s.handlerOf(r); handle != nil {
		handle(w, r)
		return
	}
	s.serveAPI(w, r)
}

// handlerOf returns the handler of a request outside the API. It returns nil for a
// request of the API, and for one that has no handler.
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

// openAPI answers with the OpenAPI description of the API.
func (s *server) openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", typeJSON)
	_, _ = w.Write(s.deps.OpenAPI) // the client may be gone
}

// limitTransfers returns a handler that refuses a request while too many transfers are
// in progress.
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
				fmt.Sprintf("the gateway sends and takes %d files already (gateway.rest.max_transfers): try again in %s s",
					cap(s.transfers), retryAfter))
		}
	}
}

// serveAPI answers a request of the API. The body of any method is read here: the
// generated handlers would read any number of bytes and wait for ever.
func (s *server) serveAPI(w http.ResponseWriter, r *http.Request) {
	if (r.ContentLength != 0 || r.Method == http.MethodPost) && s.isAPICall(r) && !s.readBody(w, r) {
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
	_, _ = fmt.Fprintln(w, text) // the client may be gone
}

// writeError answers with an error in the form that all errors have.
func (s *server) writeError(w http.ResponseWriter, r *http.Request, code int, word codes.Code, message string) {
	runtime.HTTPError(r.Context(), s.json, &marshaler{}, w, r, &runtime.HTTPStatusError{HTTPStatus: code, Err: status.Error(word, message)})
}
