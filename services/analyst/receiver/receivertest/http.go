package receivertest

import (
	"crypto/tls"
	"fmt"
	"io"
	"log" //nolint:depguard // what net/http logs with
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// HTTPServer takes requests over TLS.
type HTTPServer struct {
	*httptest.Server

	CAFile string // of an authority that does not know the server if it is not trusted
	// Check returns the status with which a request is refused before anything else, 0 for none.
	Check func(r *http.Request, body []byte) int
	// Show returns a request in a form that can be compared.
	Show func(r *http.Request, body []byte) string

	mu       sync.Mutex
	answer   Answer
	received []string
}

// retryAfter is what a busy server asks for.
const retryAfter = 7 * time.Second

// NewHTTPServer starts a server, which ends with the test.
func NewHTTPServer(
	t *testing.T, trusted Trust, check func(r *http.Request, body []byte) int, show func(r *http.Request, body []byte) string,
) *HTTPServer {
	t.Helper()
	certificate, file := Certificate(t)
	s := &HTTPServer{Check: check, Show: show, CAFile: file}
	if !trusted {
		_, s.CAFile = Certificate(t)
	}
	s.Server = httptest.NewUnstartedServer(s)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// Suite returns the server for the suite, without a receiver.
func (s *HTTPServer) Suite() Server {
	return Server{Received: s.Received, Set: s.Set, Stop: s.Close, Wait: retryAfter}
}

// Received returns what the server took.
func (s *HTTPServer) Received() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.received...)
}

// Set makes the server answer in a way.
func (s *HTTPServer) Set(a Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = a
}

// ServeHTTP implements http.Handler.
func (s *HTTPServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if status := s.Check(r, body); status != 0 {
		http.Error(w, "no", status)
		return
	}
	switch s.answer {
	case Busy:
		w.Header().Set("Retry-After", fmt.Sprint(int(retryAfter.Seconds())))
		http.Error(w, "rate_limited", http.StatusTooManyRequests)
	case Broken:
		http.Error(w, "a fault", http.StatusInternalServerError)
	case Rejects:
		http.Error(w, "invalid_payload", http.StatusBadRequest)
	case Cut:
		s.received = append(s.received, s.Show(r, body))
		panic(http.ErrAbortHandler) //nolint:forbidigo // how net/http ends a connection without an answer
	case Takes:
		s.received = append(s.received, s.Show(r, body))
		_, _ = io.WriteString(w, "ok")
	}
}
