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

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api/request"
	"github.com/benchmark-ai/bai/services/gateway/bundle"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// Scripts stores the code of users for their runs.
type Scripts interface {
	// Put does the same as bundle.Store.Put.
	Put(ctx context.Context, owner, sha256 string, size int64, body io.Reader) (code event.Bundle, repeated bool, err error)
}

// scriptPath parses the path of code: /v1/scripts/SHA256.
func scriptPath(path string) (digest string, ok bool) {
	digest, ok = strings.CutPrefix(path, "/v1/scripts/")
	return strings.ToLower(digest), ok && digest != ""
}

// putScript stores the code of a user: 201 once it is stored, 200 if it was
// stored before, 400 for bytes of another digest or an incomplete body, 411 without
// a length, 413 for too much code, and 503 for a failure that may pass.
func (s *server) putScript(w http.ResponseWriter, r *http.Request, digest string) {
	owner := cmp.Or(r.URL.Query().Get("owner"), request.CallerOf(r.Header.Values(baiv1.UserMetadata)))
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
	// The client may be gone.
	_, _ = fmt.Fprintf(w, `{"script":{"sha256":%q,"size":"%d"},"repeated":%t}`+"\n", code.SHA256, code.Size, repeated)
}

// writeScriptError answers that code is not stored, with the reason.
func (s *server) writeScriptError(w http.ResponseWriter, r *http.Request, err error) {
	var (
		digest *bundle.DigestError
		limit  *bundle.LimitError
		body   *bundle.BodyError
	)
	w.Header().Set("Connection", "close") // the rest of the body is not read
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
