package rest

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
)

// methods are the HTTP methods that a path may have.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} //nolint:gochecknoglobals // a constant

// probe is the key of a *bool in the context of a request that is routed only to find
// out whether the API has a handler for it.
type probe struct{}

// answersProbe returns a middleware that sets the *bool of a probe instead of calling
// the handler.
func answersProbe(next runtime.HandlerFunc) runtime.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request, params map[string]string) {
		if found, ok := r.Context().Value(probe{}).(*bool); ok {
			*found = true
			return
		}
		next(w, r, params)
	}
}

// routingError answers a request without a handler: with 405 and the allowed methods,
// or with 404 if the path does not exist.
func (s *server) routingError(
	_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, code int,
) {
	switch _, isProbe := r.Context().Value(probe{}).(*bool); {
	case isProbe:
	case code == http.StatusBadRequest:
		s.writeError(w, r, code, codes.InvalidArgument, "the path is not escaped as a URL is")
	default:
		s.notRouted(w, r)
	}
}

// notRouted answers a request whose path does not exist, or does not allow the method.
func (s *server) notRouted(w http.ResponseWriter, r *http.Request) {
	allowed := s.allowedMethods(r)
	if len(allowed) == 0 {
		s.writeError(w, r, http.StatusNotFound, codes.NotFound, r.URL.Path+" does not exist: /v1/openapi.json lists all paths")
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	s.writeError(w, r, http.StatusMethodNotAllowed, codes.Unimplemented,
		r.URL.Path+" does not take "+r.Method+": use "+strings.Join(allowed, " or "))
}

// allowedMethods returns the methods that the path of a request allows.
func (s *server) allowedMethods(r *http.Request) []string {
	var all []string
	for _, method := range methods {
		probed := r.Clone(r.Context())
		probed.Method = method
		if s.handlerOf(probed) != nil || s.isAPICall(probed) {
			all = append(all, method)
		}
	}
	return all
}

// isAPICall reports whether the API has a handler for a request.
func (s *server) isAPICall(r *http.Request) bool {
	found := false
	s.json.ServeHTTP(discard{}, r.WithContext(context.WithValue(r.Context(), probe{}, &found)))
	return found
}

// discard is a response that drops everything.
type discard struct{}

// Header implements http.ResponseWriter.
func (discard) Header() http.Header { return http.Header{} }

// Write implements http.ResponseWriter.
func (discard) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader implements http.ResponseWriter.
func (discard) WriteHeader(int) {}

// isRead reports whether a method only reads.
func isRead(method string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead}, method)
}
