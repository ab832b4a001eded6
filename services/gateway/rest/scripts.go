package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"

	"github.com/benchmark-ai/bai/services/gateway/bundle"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// Scripts keeps code that is sent along with runs.
type Scripts interface {
	// Put is that of script.Keeper.
	Put(ctx context.Context, owner, sha256 string, size int64, body io.Reader) (code event.Bundle, repeated bool, err error)
}

// scriptPath reads the path of code: /v1/scripts/SHA256.
func scriptPath(path string) (digest string, ok bool) {
	digest, ok = strings.CutPrefix(path, "/v1/scripts/")
	return strings.ToLower(digest), ok && digest != ""
}

// putScript takes code that a user sends: 201 once it is kept, 200 where it was
// before, 400 for bytes of another digest, or that did not come whole, 411 where
// it is not said how many there are, 413 for what is too large, and 503 for what
// may work later.
func (s *Server) putScript(w http.ResponseWriter, r *http.Request, digest string) {
	owner := cmp.Or(r.URL.Query().Get("owner"), r.Header.Get("Bai-User"), "anonymous")
	if faults := submit.CheckOwner(owner); len(faults) > 0 {
		s.writeError(w, r, http.StatusBadRequest, codes.InvalidArgument, "owner: "+faults[0].Message)
		return
	}
	if r.ContentLength < 0 {
		w.Header().Set("Connection", "close")
		s.writeError(w, r, http.StatusLengthRequired, codes.InvalidArgument, "the length of the code is needed: Content-Length")
		return
	}
	body := &deadlineReader{Reader: r.Body, control: http.NewResponseController(w), timeout: s.settings.Stall}
	code, repeated, err := s.deps.Scripts.Put(r.Context(), owner, digest, r.ContentLength, body)
	if err != nil {
		s.writeScriptError(w, r, err)
		return
	}
	status := http.StatusCreated
	if repeated {
		status = http.StatusOK
	} else {
		s.deps.Log.Info("kept code", zap.String("sha256", code.SHA256), zap.Int64("size", code.Size), zap.String("owner", owner))
	}
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"script":{"sha256":%q,"size":"%d"},"repeated":%t}`+"\n", code.SHA256, code.Size, repeated) // a client that is gone has nothing to be told
}

// writeScriptError says why code is not kept.
func (s *Server) writeScriptError(w http.ResponseWriter, r *http.Request, err error) {
	var (
		digest *bundle.DigestError
		limit  *bundle.LimitError
		body   *bundle.BodyError
	)
	w.Header().Set("Connection", "close") // the rest is not read
	switch {
	case errors.As(err, &digest):
		s.writeError(w, r, http.StatusBadRequest, codes.InvalidArgument, digest.Message)
	case errors.As(err, &limit):
		s.writeError(w, r, http.StatusRequestEntityTooLarge, codes.ResourceExhausted, limit.Message)
	case errors.As(err, &body):
		s.writeError(w, r, http.StatusBadRequest, codes.Aborted, body.Error())
	default:
		s.deps.Log.Warn("code is not kept", zap.Error(err))
		w.Header().Set("Retry-After", "5")
		s.writeError(w, r, http.StatusServiceUnavailable, codes.Unavailable, err.Error())
	}
}
