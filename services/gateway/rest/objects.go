package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Objects reads the object store for pods.
type Objects interface {
	// Link returns a URL that can be used to read an object until lasts has passed, or
	// "" if the store has no such links.
	Link(ctx context.Context, key string, lasts time.Duration) (string, error)
	// Size returns the size of an object, or store.ErrNotFound.
	Size(ctx context.Context, key string) (int64, error)
	// OpenAt opens an object for reading from an offset.
	OpenAt(ctx context.Context, key string, offset int64) (io.ReadCloser, error)
}

// linkTTL is the lifetime of a link to an object. A download that has started may take
// longer; a client whose download breaks asks for a new link.
const linkTTL = 15 * time.Minute

// objectPath parses the path of an object that a run needs: /v1/runs/RUN/objects/NAME.
func objectPath(path string) (run, key string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/v1/runs/")
	if !ok {
		return "", "", false
	}
	run, key, _ = strings.Cut(rest, "/")
	return run, key, run != "" && strings.HasPrefix(key, "objects/")
}

// getObject sends an object to the pod of a run: its bytes from the start or from an
// offset, or 307 and a link. The status is 401 or 403 for a request that may not act
// for the run, 403 for an object that is not part of the run's data and after the run's
// end, 404 for a missing object, 416 for an offset outside the object, and 503 for a
// failure that may pass.
func (s *server) getObject(w http.ResponseWriter, r *http.Request, run, key string) {
	if s.authorize(w, r, run) && s.authorizeObject(w, r, run, key) {
		s.limitTransfers(func(w http.ResponseWriter, r *http.Request) { s.serveObject(w, r, key) })(w, r)
	}
}

// Limits of how long a request waits for the projection of a run, which may lag behind
// the run's pods. Clients wait longer than projectionTimeout for a response.
const (
	projectionTimeout = 15 * time.Second
	projectionPoll    = 100 * time.Millisecond
)

// authorizeObject reports whether the token of a run may read an object, and otherwise
// refuses the request. It waits up to projectionTimeout for a run whose data are not
// projected yet.
func (s *server) authorizeObject(w http.ResponseWriter, r *http.Request, run, key string) bool {
	for begun := time.Now(); ; {
		projected, err := s.deps.Runs.Run(r.Context(), run)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			s.writeRunUnavailable(w, r, run, err)
			return false
		}
		projected.ID = run
		reason, retry := objectDenyReason(projected, key)
		switch {
		case reason == "":
			return true
		case !retry:
			s.writeError(w, r, http.StatusForbidden, codes.PermissionDenied, reason)
			return false
		case time.Since(begun) > projectionTimeout:
			w.Header().Set("Retry-After", "1")
			s.writeError(w, r, http.StatusServiceUnavailable, codes.Unavailable, reason)
			return false
		}
		select {
		case <-r.Context().Done():
			return false
		case <-time.After(projectionPoll):
		}
	}
}

// serveObject sends an object, or redirects to a link.
func (s *server) serveObject(w http.ResponseWriter, r *http.Request, key string) {
	if s.deps.Objects == nil {
		s.writeError(w, r, http.StatusNotFound, codes.NotFound,
			"there is no object store here: the gateway's settings name none (objects.url)")
		return
	}
	link, err := s.deps.Objects.Link(r.Context(), key, linkTTL)
	switch {
	case err != nil:
		s.writeObjectError(w, r, key, err)
	case link != "":
		w.Header().Set("Location", link)
		w.WriteHeader(http.StatusTemporaryRedirect)
	default:
		s.sendObject(w, r, key)
	}
}

// sendObject sends the bytes of an object.
func (s *server) sendObject(w http.ResponseWriter, r *http.Request, key string) {
	size, err := s.deps.Objects.Size(r.Context(), key)
	if err != nil {
		s.writeObjectError(w, r, key, err)
		return
	}
	offset, partial := rangeFrom(r.Header.Get("Range"))
	if partial && offset >= size {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", size))
		s.writeError(w, r, http.StatusRequestedRangeNotSatisfiable, codes.OutOfRange, fmt.Sprintf("the object has %d bytes", size))
		return
	}
	body, err := s.deps.Objects.OpenAt(r.Context(), key, offset)
	if err != nil {
		s.writeObjectError(w, r, key, err)
		return
	}
	defer func() { _ = body.Close() }() // the body was only read
	h := w.Header()
	h.Set("Content-Type", typeBytes)
	h.Set("Accept-Ranges", "bytes")
	h.Set("Content-Length", strconv.FormatInt(size-offset, 10))
	code := http.StatusOK
	if partial {
		code = http.StatusPartialContent
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", offset, size-1, size))
	}
	w.WriteHeader(code)
	if _, err := io.CopyBuffer(writerOnly{w}, body, make([]byte, 256<<10)); err != nil {
		s.deps.Log.Info("cut", zap.String("object", key), zap.Error(err))
		panic(http.ErrAbortHandler) //nolint:forbidigo // only this tells the client that the response is incomplete
	}
}

// writerOnly hides all methods of a writer except Write.
type writerOnly struct{ io.Writer }

// writeObjectError answers with the reason why an object cannot be read.
func (s *server) writeObjectError(w http.ResponseWriter, r *http.Request, key string, err error) {
	if errors.Is(err, store.ErrNotFound) {
		s.writeError(w, r, http.StatusNotFound, codes.NotFound, fmt.Sprintf("object %.100q does not exist", key))
		return
	}
	s.deps.Log.Warn("object cannot be read", zap.String("object", key), zap.Error(err))
	w.Header().Set("Retry-After", "1")
	s.writeError(w, r, http.StatusServiceUnavailable, codes.Unavailable, "the object store cannot be read now")
}
