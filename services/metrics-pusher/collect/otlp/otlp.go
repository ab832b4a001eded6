// Package otlp receives metrics over OpenTelemetry's protocol, by HTTP. See https://opentelemetry.io/docs/specs/otlp/.
package otlp

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// path is where requests go.
const path = "/v1/metrics"

// Path is where requests go that have a key.
func Path(key string) string { return "/" + key + path }

// Bounds of requests.
const (
	maxBody        = 4 << 20 // bytes, compressed and not
	maxConn        = 64      // connections
	maxAppend      = 1000    // samples of one call of Append
	requestTimeout = 30 * time.Second
)

// Appender stores samples.
type Appender interface {
	// Append stores samples, or fails and stores none. A sample that comes again is stored once.
	Append(samples []event.Sample) error
	// Drop counts n samples that are not stored, with the reason.
	Drop(n int64, reason string)
}

// Server receives metrics that programs send.
type Server struct {
	http       *http.Server
	key        string
	appender   Appender
	log        *zap.Logger
	decodeLock sync.Mutex // one request is read at a time, to bound the memory
	done       sync.WaitGroup
}

// Serve takes requests at l until Close, at Path(key) or at the path without a key. Samples of a request that was answered with success are
// stored. A request with another key is refused: on a shared loopback a collector may listen where another one did, whose benchmark still
// sends.
func Serve(l net.Listener, key string, to Appender, log *zap.Logger) *Server {
	s := &Server{key: key, appender: to, log: log}
	s.http = &http.Server{
		Handler: s, ReadHeaderTimeout: requestTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
		IdleTimeout: 2 * requestTimeout, MaxHeaderBytes: 64 << 10,
		ErrorLog: zap.NewStdLog(log),
	}
	s.done.Go(func() {
		if err := s.http.Serve(&limitListener{l, make(chan struct{}, maxConn)}); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("no more numbers are taken over OTLP", zap.Error(err))
		}
	})
	return s
}

// Close answers the requests that have begun, for at most a second, and stops the server.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	s.done.Wait()
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.URL.Path != path && r.URL.Path != Path(s.key):
		http.Error(w, "metrics of this run alone are taken here, at "+path, http.StatusNotFound)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "metrics are sent with POST", http.StatusMethodNotAllowed)
		return
	case err != nil || kind != typeProtobuf && kind != typeJSON:
		http.Error(w, "metrics are taken as "+typeProtobuf+" or "+typeJSON, http.StatusUnsupportedMediaType)
		return
	}
	refused, err := s.ingest(r, kind)
	w.Header().Set("Content-Type", kind)
	if err == nil {
		_, _ = w.Write(partialSuccess(kind, refused, "of a form that has no samples"))
		return
	}
	code, rpc := http.StatusBadRequest, codeInvalid
	switch {
	case errors.Is(err, errEncoding):
		code = http.StatusUnsupportedMediaType
	case errors.Is(err, errTooLarge):
		code, rpc = http.StatusRequestEntityTooLarge, codeExhausted
	case errors.Is(err, errUnavailable):
		code, rpc = http.StatusServiceUnavailable, codeUnavailable
		w.Header().Set("Retry-After", "1")
	}
	if code != http.StatusServiceUnavailable { // a client does not send these again: the samples are lost
		s.appender.Drop(lost(err), "output.otlp: a request was refused: "+err.Error())
	}
	w.WriteHeader(code)
	_, _ = w.Write(status(kind, rpc, err.Error()))
}

// Reasons to refuse a request.
var (
	errEncoding    = errors.New("content-encoding: gzip and identity are known")
	errUnavailable = errors.New("it cannot be kept now")
)

// lost returns how many samples are lost with a request that is refused, one if that is not known.
func lost(err error) int64 {
	if many, ok := errors.AsType[*tooManySamplesError](err); ok {
		return int64(many.count)
	}
	return 1
}

// ingest stores the samples of a request, and returns how many of its data points are refused.
func (s *Server) ingest(r *http.Request, kind string) (refused int64, err error) {
	body, err := read(r)
	if err != nil {
		return 0, err
	}
	s.decodeLock.Lock()
	defer s.decodeLock.Unlock()
	data, err := decode(kind, body)
	if err != nil {
		return 0, fmt.Errorf("read it: %w", err)
	}
	if err := checkSamples(data); err != nil {
		return 0, err
	}
	samples, refused := samplesOf(data)
	now := time.Now().UnixNano()
	for i := range samples {
		if samples[i].Time == 0 {
			samples[i].Time = now
		}
	}
	for some := range slices.Chunk(samples, maxAppend) {
		if err := s.appender.Append(some); err != nil { // the part that is stored is recognized when the client sends all again
			s.log.Warn("what was sent over OTLP cannot be kept", zap.Error(err))
			return 0, errors.Join(errUnavailable, err)
		}
	}
	if refused > 0 {
		s.appender.Drop(refused, "output.otlp: data points of a form that has no samples")
	}
	return refused, nil
}

// read reads the body of a request.
func read(r *http.Request) ([]byte, error) {
	from := io.LimitReader(r.Body, maxBody+1)
	switch strings.ToLower(r.Header.Get("Content-Encoding")) {
	case "", "identity":
	case "gzip":
		unpacked, err := gzip.NewReader(from)
		if err != nil {
			return nil, fmt.Errorf("unpack it: %w", err)
		}
		from = io.LimitReader(unpacked, maxBody+1)
	default:
		return nil, errEncoding
	}
	body, err := io.ReadAll(from)
	switch {
	case len(body) > maxBody:
		return nil, fmt.Errorf("it is %w: %d bytes", errTooLarge, maxBody)
	case err != nil:
		return nil, fmt.Errorf("read it: %w", err)
	}
	return body, nil
}

// limitListener is a listener with a limit for open connections.
type limitListener struct {
	net.Listener

	slots chan struct{}
}

// Accept implements net.Listener.
func (l *limitListener) Accept() (net.Conn, error) {
	l.slots <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &conn{Conn: c, leave: sync.OnceFunc(func() { <-l.slots })}, nil
}

type conn struct {
	net.Conn

	leave func()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
