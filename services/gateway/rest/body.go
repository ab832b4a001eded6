package rest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
)

// deadlineWriter is a response that fails if the client takes nothing for timeout.
type deadlineWriter struct {
	http.ResponseWriter

	control *http.ResponseController
	timeout time.Duration
}

// WriteHeader implements http.ResponseWriter.
func (p *deadlineWriter) WriteHeader(code int) {
	_ = p.control.SetWriteDeadline(time.Now().Add(p.timeout)) // replaces the deadline of an earlier response
	if code == http.StatusTooManyRequests && p.Header().Get("Retry-After") == "" {
		p.Header().Set("Retry-After", retryAfter)
	}
	p.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (p *deadlineWriter) Write(b []byte) (int, error) {
	if err := p.control.SetWriteDeadline(time.Now().Add(p.timeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return p.ResponseWriter.Write(b)
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (p *deadlineWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// deadlineReader is a request body that fails if nothing arrives for timeout.
type deadlineReader struct {
	io.Reader

	control *http.ResponseController
	timeout time.Duration
}

// Read implements io.Reader.
func (s *deadlineReader) Read(b []byte) (int, error) {
	if err := s.control.SetReadDeadline(time.Now().Add(s.timeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	n, err := s.Reader.Read(b)
	if errors.Is(err, io.EOF) {
		_ = s.control.SetReadDeadline(time.Time{}) // the deadline would also end the response
	}
	return n, err
}

// readBody reads the body of a call and reports whether the body is valid. Otherwise it
// has sent an error. The whole body must arrive within Settings.Stall.
func (s *server) readBody(w http.ResponseWriter, r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.ContentLength != 0 && (err != nil || kind != typeJSON && kind != typeTOML) {
		s.writeError(w, r, http.StatusUnsupportedMediaType, codes.InvalidArgument,
			fmt.Sprintf("content type %.60q is not one of %s, %s (which is a descriptor alone)",
				r.Header.Get("Content-Type"), typeJSON, typeTOML))
		return false
	}
	if kind == typeTOML {
		r.Header.Set("Content-Type", typeTOML)
	}
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(s.settings.Stall)); err != nil {
		s.writeError(w, r, http.StatusInternalServerError, codes.Internal, "the server cannot wait for the request")
		return false
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		w.Header().Set("Connection", "close") // the rest of the body is not read
		s.writeError(w, r, http.StatusRequestTimeout, codes.DeadlineExceeded, "the request did not come in time: "+err.Error())
		return false
	case len(body) > maxBody:
		w.Header().Set("Connection", "close")
		s.writeError(w, r, http.StatusRequestEntityTooLarge, codes.ResourceExhausted,
			fmt.Sprintf("the request has more than %d bytes", maxBody))
		return false
	}
	_ = control.SetReadDeadline(time.Time{}) // the deadline would also end the response
	r.Body = io.NopCloser(bytes.NewReader(body))
	return true
}
