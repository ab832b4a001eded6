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
)

// Settings are what an operator may choose. The zero value works.
type Settings struct {
	Hosts       []string      `toml:"hosts"`        // names by which clients call the server beside its addresses and localhost; none means any, but over loopback none
	Stall       time.Duration `toml:"stall"`        // in which a client must send or take something; zero means 30s
	StopTimeout time.Duration `toml:"stop_timeout"` // how long requests may take to end when the server stops; zero means 3s
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
	return errors.Join(errs...)
}

// patience is how long a client may take to say what it wants.
func (s Settings) patience() time.Duration {
	return min(cmp.Or(s.Stall, 30*time.Second), 10*time.Second)
}

// Limits of one request.
const (
	maxBody   = 1536 << 10 // bytes; what gRPC takes, in base64
	maxHeader = 32 << 10   // bytes
)

// Files keeps what runs leave.
type Files interface {
	// Put is that of artifact.Keeper.
	Put(ctx context.Context, run, name string, size int64, body io.Reader) (f artifact.File, repeated bool, err error)
}

// Deps are what a Server needs from others.
type Deps struct {
	API     *Inside // where the gRPC server accepts
	Files   Files
	Scripts Scripts
	Objects Objects                         // that pods read; nil: none are to be had here
	Token   func(run string) string         // the right to speak for a run; empty where there is none
	Ready   func(ctx context.Context) error // says why calls would fail now; nil: they would not
	OpenAPI []byte                          // the description of what is served
	Log     *zap.Logger
}

// Server serves HTTP.
type Server struct {
	settings Settings
	deps     Deps
	runs     baiv1.RunServiceClient
	json     *runtime.ServeMux
}

// Serve returns the part that serves l until it is told to stop. It closes l.
// Requests still under way may end by themselves for a moment, then are cut.
func Serve(s Settings, d Deps, l net.Listener) service.Part {
	s.Stall = cmp.Or(s.Stall, 30*time.Second)
	s.StopTimeout = cmp.Or(s.StopTimeout, 3*time.Second)
	return func(ctx context.Context) error {
		conn, err := grpc.NewClient("passthrough:///inside", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return d.API.Dial(ctx) }))
		if err != nil {
			return fmt.Errorf("connect HTTP to the API: %w", err)
		}
		server := &Server{settings: s, deps: d, runs: baiv1.NewRunServiceClient(conn), json: newMux()}
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

func (s *Server) serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: s.settings.patience(), IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader,
		ErrorLog: zap.NewStdLog(s.deps.Log.Named("http")),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.settings.StopTimeout)
		defer cancel()
		if server.Shutdown(patience) != nil {
			_ = server.Close() // cuts what is left
		}
		err = <-served
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
}

// newMux returns what turns requests into calls.
func newMux() *runtime.ServeMux {
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
		runtime.WithRoutingErrorHandler(func(ctx context.Context, mux *runtime.ServeMux, m runtime.Marshaler, w http.ResponseWriter, r *http.Request, code int) {
			told := status.Errorf(codes.NotFound, "%s %.200s does not exist: /v1/openapi.json says what does", r.Method, r.URL.Path)
			runtime.HTTPError(ctx, mux, m, w, r, &runtime.HTTPStatusError{HTTPStatus: code, Err: told})
		}),
	)
}

// handler answers every request.
func (s *Server) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		w = &patient{ResponseWriter: w, control: http.NewResponseController(w), stall: s.settings.Stall}
		if why := from(r).refuse(s.settings.Hosts); why != "" && !fromPod(r) {
			s.refuse(w, r, http.StatusForbidden, codes.PermissionDenied, why)
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

// from returns what a request says of where it comes from.
func from(r *http.Request) asked {
	a := asked{Host: r.Host, Origin: r.Header.Get("Origin"), Site: r.Header.Get("Sec-Fetch-Site")}
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if ap, err := netip.ParseAddrPort(addr.String()); err == nil {
			a.Local = ap.Addr()
		}
	}
	return a
}

// route gives a request to who answers it.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	run, name, isFile := filePath(r.URL.Path)
	digest, isScript := scriptPath(r.URL.Path)
	needs, key, isObject := objectPath(r.URL.Path)
	switch {
	case isObject && r.Method == http.MethodGet:
		s.object(w, r, needs, key)
	case isScript && r.Method == http.MethodPut:
		s.keepScript(w, r, digest)
	case isFile && r.Method == http.MethodPut:
		s.keep(w, r, run, name)
	case isFile && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		s.fetch(w, r, run, name)
	case r.URL.Path == "/healthz":
		s.plain(w, http.StatusOK, "ok")
	case r.URL.Path == "/readyz":
		s.ready(w, r)
	case r.URL.Path == "/v1/openapi.json" && r.Method == http.MethodGet:
		w.Header().Set("Content-Type", typeJSON)
		_, _ = w.Write(s.deps.OpenAPI) // a client that is gone has nothing to be told
	default:
		s.call(w, r)
	}
}

// call answers a request that is a call of the API.
func (s *Server) call(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && !s.readBody(w, r) {
		return
	}
	s.json.ServeHTTP(w, r)
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.deps.Ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		if err := s.deps.Ready(ctx); err != nil {
			s.plain(w, http.StatusServiceUnavailable, err.Error())
			return
		}
	}
	s.plain(w, http.StatusOK, "ready")
}

func (s *Server) plain(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, text) // a client that is gone has nothing to be told
}

// refuse answers with an error in the form of every other.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, code int, word codes.Code, message string) {
	runtime.HTTPError(r.Context(), s.json, &marshaler{}, w, r, &runtime.HTTPStatusError{HTTPStatus: code, Err: status.Error(word, message)})
}
