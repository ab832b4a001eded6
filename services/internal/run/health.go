package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/listener"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// Check says why something is not ready, nil if it is, or a NoteError.
type Check func(ctx context.Context) error

// NoteError is a Check's remark about a dependency that is ready.
type NoteError string

// Error implements error.
func (n NoteError) Error() string { return string(n) }

// Health returns the runnable that serves, over HTTP at addr, whether the process lives
// (/healthz) and whether its dependencies are ready (/readyz: 200 and a line for each
// NoteError, or 503 and a line for each check that fails). It serves metrics at /metrics
// if they are not nil, and the Go runtime's profiles at /debug/pprof/ if addr is a
// loopback address. Requests for a profile must name such an address: a page in a browser
// whose own name resolves to it is refused. The runnable ends with an error if it cannot
// listen on addr. An empty addr serves nothing.
func Health(addr string, checks map[string]Check, metrics http.Handler) service.Runnable {
	return func(ctx context.Context) error {
		if addr == "" {
			<-ctx.Done()
			return nil
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
		if err != nil {
			return fmt.Errorf("serve health: %w", err)
		}
		return serve(ctx, listener.Retry(l), checks, metrics)
	}
}

func serve(ctx context.Context, l net.Listener, checks map[string]Check, metrics http.Handler) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { ready(w, r, checks) })
	if metrics != nil {
		mux.Handle("GET /metrics", metrics)
	}
	if a, ok := l.Addr().(*net.TCPAddr); ok && a.IP.IsLoopback() {
		mux.HandleFunc("GET /debug/pprof/", loopbackOnly(pprof.Index))
		mux.HandleFunc("GET /debug/pprof/profile", loopbackOnly(pprof.Profile))
		mux.HandleFunc("GET /debug/pprof/trace", loopbackOnly(pprof.Trace))
	}
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve health: %w", err)
	}
	return nil
}

// loopbackOnly answers requests whose Host is localhost or an address of loopback.
func loopbackOnly(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if host != "localhost" && (err != nil || !addr.Unmap().IsLoopback()) {
			http.Error(w, fmt.Sprintf("host %.100q is not this machine: ask http://localhost or http://127.0.0.1", r.Host),
				http.StatusForbidden)
			return
		}
		next(w, r)
	}
}

func ready(w http.ResponseWriter, r *http.Request, checks map[string]Check) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	var errs []error
	var notes strings.Builder
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		err := checks[name](ctx)
		if note, ok := errors.AsType[NoteError](err); ok {
			fmt.Fprintf(&notes, "%s: %s\n", name, note)
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintf(w, "ready\n%s", notes.String())
}
