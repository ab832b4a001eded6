package rest

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// filePath reads the path of a file of a run: /v1/runs/RUN/artifacts/NAME.
func filePath(path string) (run, name string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/v1/runs/")
	if !ok {
		return "", "", false
	}
	run, rest, _ = strings.Cut(rest, "/")
	name, ok = strings.CutPrefix(rest, "artifacts/")
	return run, name, ok && run != "" && name != ""
}

// putArtifact stores a file that a pod of a run sends. The status is 201 for a new
// file, 200 for a file that was stored before, 401 or 403 for a request that may not
// act for the run any more or at all, 404 for a run that does not exist, 400 for an
// invalid name, 409 for a name with other content, 413 for a file that is too large,
// and 503 for a failure that may pass.
func (s *server) putArtifact(w http.ResponseWriter, r *http.Request, run, name string) {
	if !s.authorize(w, r, run) {
		return
	}
	if _, err := s.runs.GetRun(r.Context(), &baiv1.GetRunRequest{Run: run}); err != nil {
		s.writeAPIError(w, r, err)
		return
	}
	if !s.acceptsUploads(w, r, run) {
		return
	}
	body := &deadlineReader{Reader: r.Body, control: http.NewResponseController(w), timeout: s.settings.Stall}
	f, repeated, err := s.deps.Files.Put(r.Context(), run, name, r.ContentLength, body)
	if err != nil {
		s.writeArtifactError(w, r, run, err)
		return
	}
	code := http.StatusCreated
	if repeated {
		code = http.StatusOK
	} else {
		s.deps.Log.Info("kept", zap.String("run", run), zap.String("artifact", f.Name), zap.Int64("size", f.Size))
	}
	w.Header().Set("ETag", `"`+f.SHA256+`"`)
	w.WriteHeader(code)
}

// acceptsUploads reports whether the pods of a run may still store files, and otherwise
// refuses the request.
func (s *server) acceptsUploads(w http.ResponseWriter, r *http.Request, run string) bool {
	projected, err := s.deps.Runs.Run(r.Context(), run)
	if errors.Is(err, store.ErrNotFound) {
		return true // the run was submitted and has no projection yet
	}
	var streams []store.Stream
	if err == nil && projected.Phase == event.PhaseFinished {
		streams, err = s.deps.Runs.Streams(r.Context(), run)
	}
	if err != nil {
		s.writeRunUnavailable(w, r, run, err)
		return false
	}
	if reason := uploadDenyReason(projected, streams, time.Now()); reason != "" {
		w.Header().Set("Connection", "close") // the file is not read
		s.writeError(w, r, http.StatusForbidden, codes.PermissionDenied, reason)
		return false
	}
	return true
}

// writeRunUnavailable answers that the run cannot be read now.
func (s *server) writeRunUnavailable(w http.ResponseWriter, r *http.Request, run string, err error) {
	s.deps.Log.Warn("run cannot be looked up", zap.String("run", run), zap.Error(err))
	w.Header().Set("Retry-After", "1")
	s.writeError(w, r, http.StatusServiceUnavailable, codes.Unavailable, "the run cannot be looked up now")
}

// authorize reports whether a request has the token of a run, and otherwise refuses the
// request.
func (s *server) authorize(w http.ResponseWriter, r *http.Request, run string) bool {
	code, reason := s.checkRunToken(r, run)
	if reason == "" {
		return true
	}
	word := codes.PermissionDenied
	if code == http.StatusUnauthorized {
		word = codes.Unauthenticated
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	s.writeError(w, r, code, word, reason)
	return false
}

// checkRunToken returns the status and the reason why a request may not act for a run,
// or "".
func (s *server) checkRunToken(r *http.Request, run string) (code int, reason string) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return http.StatusUnauthorized, "the token of the run is needed: Authorization: Bearer TOKEN"
	}
	want := ""
	if s.deps.Token != nil && submit.IsRunID(run) {
		want = s.deps.Token(run)
	}
	if want == "" || subtle.ConstantTimeCompare([]byte(want), []byte(token)) != 1 {
		return http.StatusForbidden, fmt.Sprintf("this is not the token of run %.40q", run)
	}
	return 0, ""
}

// writeArtifactError answers with the reason why a file is not stored.
func (s *server) writeArtifactError(w http.ResponseWriter, r *http.Request, run string, err error) {
	var (
		name  *artifact.NameError
		taken *artifact.ContentConflictError
		limit *artifact.LimitError
		body  *artifact.BodyError
	)
	switch {
	case errors.As(err, &name):
		s.writeError(w, r, http.StatusBadRequest, codes.InvalidArgument, name.Error())
	case errors.As(err, &taken):
		s.writeError(w, r, http.StatusConflict, codes.AlreadyExists, taken.Error())
	case errors.As(err, &limit):
		w.Header().Set("Connection", "close") // the rest of the body is not read
		s.writeError(w, r, http.StatusRequestEntityTooLarge, codes.ResourceExhausted, limit.Error())
	case errors.As(err, &body):
		w.Header().Set("Connection", "close")
		s.writeError(w, r, http.StatusBadRequest, codes.Aborted, body.Error())
	default:
		s.deps.Log.Warn("not kept", zap.String("run", run), zap.Error(err))
		w.Header().Set("Retry-After", "5")
		s.writeError(w, r, http.StatusServiceUnavailable, codes.Unavailable, err.Error())
	}
}

// writeAPIError answers with an error of the API.
func (s *server) writeAPIError(w http.ResponseWriter, r *http.Request, err error) {
	runtime.HTTPError(r.Context(), s.json, &marshaler{}, w, r, err)
}

// getArtifact sends the bytes of a file of a run, from the start or from an offset.
func (s *server) getArtifact(w http.ResponseWriter, r *http.Request, run, name string) {
	owner := r.URL.Query().Get("owner")
	ctx, err := runtime.AnnotateContext(r.Context(), s.json, r, baiv1.RunService_GetArtifact_FullMethodName)
	if err != nil {
		s.writeAPIError(w, r, err)
		return
	}
	files, err := s.runs.ListArtifacts(ctx, &baiv1.ListArtifactsRequest{Run: run, Owner: owner})
	if err != nil {
		s.writeAPIError(w, r, err)
		return
	}
	file := findArtifact(files.GetArtifacts(), name)
	if file == nil {
		s.writeAPIError(w, r, status.Errorf(codes.NotFound, "artifact %.100q of run %.100q does not exist", name, run))
		return
	}
	offset, partial := rangeFrom(r.Header.Get("Range"))
	if partial && offset >= file.GetSize() {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", file.GetSize()))
		s.writeError(w, r, http.StatusRequestedRangeNotSatisfiable, codes.OutOfRange, fmt.Sprintf("the file has %d bytes", file.GetSize()))
		return
	}
	if r.Method == http.MethodHead {
		s.writeFileHeader(w, file, offset, partial)
		return
	}
	stream, err := s.runs.GetArtifact(ctx, &baiv1.GetArtifactRequest{Run: run, Owner: owner, Name: name, Offset: offset})
	var first *baiv1.GetArtifactResponse
	if err == nil {
		first, err = stream.Recv() // before the header: an error has its own status
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.writeAPIError(w, r, err)
		return
	}
	s.writeFileHeader(w, file, offset, partial)
	if err == nil {
		err = sendFile(w, first, stream)
	}
	if !errors.Is(err, io.EOF) {
		s.deps.Log.Info("cut", zap.String("run", run), zap.String("artifact", name), zap.Error(err))
		panic(http.ErrAbortHandler) //nolint:forbidigo // only this tells the client that the response is incomplete
	}
}

// sendFile sends the first part of a file and those that follow. The error is io.EOF
// after the last one.
func sendFile(w io.Writer, part *baiv1.GetArtifactResponse, stream grpc.ServerStreamingClient[baiv1.GetArtifactResponse]) (err error) {
	for err == nil {
		if _, err = w.Write(part.GetData()); err == nil {
			part, err = stream.Recv()
		}
	}
	return err
}

// writeFileHeader writes the header of a file.
func (s *server) writeFileHeader(w http.ResponseWriter, file *baiv1.Artifact, offset int64, partial bool) {
	h := w.Header()
	h.Set("Content-Type", typeBytes) // a browser must not run any content
	h.Set("Content-Disposition", "attachment")
	h.Set("Accept-Ranges", "bytes")
	h.Set("ETag", `"`+file.GetSha256()+`"`)
	h.Set("Content-Length", strconv.FormatInt(file.GetSize()-offset, 10))
	if !partial {
		w.WriteHeader(http.StatusOK)
		return
	}
	h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", offset, file.GetSize()-1, file.GetSize()))
	w.WriteHeader(http.StatusPartialContent)
}

func findArtifact(files []*baiv1.Artifact, name string) *baiv1.Artifact {
	for _, f := range files {
		if f.GetName() == name {
			return f
		}
	}
	return nil
}

// rangeFrom parses a Range of the form bytes=N-. It ignores any other form, so the
// whole file is sent.
func rangeFrom(header string) (offset int64, partial bool) {
	text, ok := strings.CutPrefix(header, "bytes=")
	if !ok {
		return 0, false
	}
	text, ok = strings.CutSuffix(text, "-")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, false
	}
	return n, true
}
