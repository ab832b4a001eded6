package source_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// slow returns settings with which every connection counts as slow.
func slow() source.Settings {
	s := quick
	s.MaxSize, s.Slow = 64<<20, 1<<50
	return s
}

// rangeServer serves one body, and counts concurrent requests and bytes sent.
type rangeServer struct {
	*httptest.Server

	content []byte
	etag    string
	refuse  func(n int, r *http.Request, w http.ResponseWriter) bool // if set, it answers in place of the server
	cut     func(n int) int64                                        // bytes after which the n-th response is cut, from 1; 0 means never

	requests, inFlight, maxInFlight, rangeRequests atomic.Int64
	bytesSent                                      atomic.Int64
}

func newRangeServer(t *testing.T, content []byte) *rangeServer {
	t.Helper()
	s := &rangeServer{content: content, etag: `"a"`}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *rangeServer) serve(w http.ResponseWriter, r *http.Request) {
	n := int(s.requests.Add(1))
	now := s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	for most := s.maxInFlight.Load(); now > most && !s.maxInFlight.CompareAndSwap(most, now); {
		most = s.maxInFlight.Load()
	}
	if r.Header.Get("Range") != "" {
		s.rangeRequests.Add(1)
	}
	if s.refuse != nil && s.refuse(n, r, w) {
		return
	}
	if s.etag != "" {
		w.Header().Set("ETag", s.etag)
	}
	c := &counter{ResponseWriter: w, of: s}
	if s.cut != nil {
		c.left = s.cut(n)
	}
	http.ServeContent(c, r, "", time.Time{}, bytes.NewReader(s.content))
}

// counter counts the bytes sent, and may break off.
type counter struct {
	http.ResponseWriter

	of   *rangeServer
	left int64
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	if c.left > 0 && int64(len(p)) >= c.left {
		n, _ := c.ResponseWriter.Write(p[:c.left]) // the client may be gone
		c.of.bytesSent.Add(int64(n))
		_ = http.NewResponseController(c.ResponseWriter).Flush() // the client may be gone
		abort(c.ResponseWriter)
		return n, io.ErrClosedPipe
	}
	if c.left > 0 {
		c.left -= int64(len(p))
	}
	n, err := c.ResponseWriter.Write(p)
	c.of.bytesSent.Add(int64(n))
	return n, err
}

func TestASlowSourceIsAskedForSeveralPartsAtOnce(t *testing.T) {
	big := bytesOf(14<<20 + 7)
	for name, tt := range map[string]struct {
		settings func(*source.Settings)
		serve    func(*rangeServer)
		parts    bool
		most     int64
	}{
		"where it can do that":                     {parts: true, most: 4},
		"but no more than settings say":            {settings: func(s *source.Settings) { s.Parts = 2 }, parts: true, most: 2},
		"and no more than its host may be":         {settings: func(s *source.Settings) { s.PerHost = 2 }, parts: true, most: 2},
		"not where settings say one":               {settings: func(s *source.Settings) { s.Parts = 1 }, most: 1},
		"not where it is fast":                     {settings: func(s *source.Settings) { s.Slow = 1 }, most: 1},
		"not where nothing tells that it is one":   {serve: func(s *rangeServer) { s.etag = "" }, most: 1},
		"and each of them is resumed after a cut":  {serve: func(s *rangeServer) { s.cut = func(n int) int64 { return int64(n%3) << 20 } }, parts: true, most: 4},
		"and each of them is asked for again":      {serve: func(s *rangeServer) { s.refuse = every(3, http.StatusServiceUnavailable) }, parts: true, most: 4},
		"and in one piece where that is refused":   {serve: func(s *rangeServer) { s.refuse = parts(http.StatusForbidden) }, parts: true, most: 4},
		"and in one piece where it is not a part":  {serve: func(s *rangeServer) { s.refuse = parts(http.StatusOK) }, parts: true, most: 4},
		"and in one piece where all that fails":    {serve: func(s *rangeServer) { s.refuse = parts(http.StatusBadGateway) }, parts: true, most: 4},
		"and in one piece where it has other ends": {serve: func(s *rangeServer) { s.refuse = parts(http.StatusRequestedRangeNotSatisfiable) }, parts: true, most: 4},
	} {
		t.Run(name, func(t *testing.T) {
			s, settings := newRangeServer(t, big), slow()
			if tt.serve != nil {
				tt.serve(s)
			}
			if tt.settings != nil {
				tt.settings(&settings)
			}
			s.checkDownload(t, settings)
			if got := s.rangeRequests.Load() > 0; got != tt.parts {
				t.Errorf("asked for parts: %v, want %v", got, tt.parts)
			}
			if got := s.maxInFlight.Load(); got > tt.most+1 { // the abandoned request may not have ended yet
				t.Errorf("%d requests at once, want at most %d", got, tt.most)
			}
		})
	}
}

// checkDownload checks that the whole body arrives.
func (s *rangeServer) checkDownload(t *testing.T, settings source.Settings) {
	t.Helper()
	var k sink
	a, err := reader(t, settings).Get(t.Context(), source.Request{URL: s.URL, OnProgress: k.progress}, k.put)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(s.content, k.Bytes()) || a.ETag != s.etag {
		t.Errorf("other bytes came: %d of %d, %q", k.Len(), len(s.content), a.ETag)
	}
	if k.done != int64(len(s.content)) || k.total != k.done {
		t.Errorf("progress ended at %d of %d", k.done, k.total)
	}
}

// every answers each n-th request with that status.
func every(n, status int) func(int, *http.Request, http.ResponseWriter) bool {
	return func(i int, _ *http.Request, w http.ResponseWriter) bool {
		if i%n == 0 {
			w.WriteHeader(status)
		}
		return i%n == 0
	}
}

// parts answers requests for parts with an end with that status.
func parts(status int) func(int, *http.Request, http.ResponseWriter) bool {
	return func(_ int, r *http.Request, w http.ResponseWriter) bool {
		rng := r.Header.Get("Range")
		if rng == "" || strings.HasSuffix(rng, "-") {
			return false
		}
		w.WriteHeader(status)
		return true
	}
}

func TestASourceThatChangesBetweenItsPartsIsBroughtAsItIsAtTheEnd(t *testing.T) {
	old, young := bytesOf(14<<20), append(bytesOf(13<<20), "young"...)
	s := newRangeServer(t, old)
	var once sync.Once
	var mu sync.Mutex
	s.refuse = func(_ int, r *http.Request, w http.ResponseWriter) bool {
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("Range") != "" {
			once.Do(func() { s.content, s.etag = young, `"b"` })
		}
		w.Header().Set("ETag", s.etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.content))
		return true
	}
	var k sink
	a, err := reader(t, slow()).Get(t.Context(), source.Request{URL: s.URL}, k.put)
	if err != nil || !bytes.Equal(young, k.Bytes()) || a.ETag != `"b"` {
		t.Errorf("Get: %+v, %v, %d bytes", a, err, k.Len())
	}
}

func TestAllPartsEndAtOnceWhenATransferIsCanceledOrItsSinkIsFull(t *testing.T) {
	before := runtime.NumGoroutine()
	enough := errors.New("enough")
	s := newRangeServer(t, bytesOf(14<<20))
	hold := make(chan struct{})
	defer close(hold)
	var serves atomic.Bool // a request of the first transfer may come after its end
	s.refuse = func(_ int, r *http.Request, _ http.ResponseWriter) bool {
		if r.Header.Get("Range") == "" || serves.Load() {
			return false
		}
		select {
		case <-hold:
		case <-r.Context().Done():
		}
		return true
	}
	r := reader(t, slow())
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(enough) })
	if _, err := r.Get(ctx, source.Request{URL: s.URL}, new(sink).put); !errors.Is(err, enough) {
		t.Errorf("Get: %v, want %v", err, enough)
	}
	serves.Store(true)
	n := 0
	_, err := r.Get(t.Context(), source.Request{URL: s.URL}, func(_ context.Context, _ int64, fill func(io.Writer) error) error {
		return fill(writer(func(p []byte) (int, error) {
			if n += len(p); n > 10<<20 {
				return 0, enough
			}
			return len(p), nil
		}))
	})
	if !errors.Is(err, enough) {
		t.Errorf("Get: %v, want %v", err, enough)
	}
	s.CloseClientConnections()
	r.Close()
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before+3; {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines are left of %d", runtime.NumGoroutine(), before)
		}
		runtime.Gosched()
	}
}

func TestAHostIsAskedNoMoreAtOnceThanSettingsSayWhoeverWantsIt(t *testing.T) {
	s, settings := newRangeServer(t, bytesOf(1<<20)), quick
	settings.PerHost = 2
	s.refuse = func(int, *http.Request, http.ResponseWriter) bool {
		for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end) && s.inFlight.Load() < 3; {
			runtime.Gosched()
		}
		return false
	}
	r := reader(t, settings)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if _, err := r.Get(t.Context(), source.Request{URL: s.URL + "/" + strconv.Itoa(i)}, new(sink).put); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := s.maxInFlight.Load(); got > 2 {
		t.Errorf("%d at once", got)
	}
}

func TestAHostsRateIsKeptAndIsNoStall(t *testing.T) {
	s, settings := newRangeServer(t, bytesOf(3<<20)), quick
	settings.Rate, settings.Stall = 4<<20, 250*time.Millisecond
	r := reader(t, settings)
	start := time.Now()
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			if _, err := r.Get(t.Context(), source.Request{URL: fmt.Sprint(s.URL, "/", i)}, new(sink).put); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if took := time.Since(start); took < 1200*time.Millisecond {
		t.Errorf("6 MiB at 4 MiB a second took %s", took)
	}
}

func TestWhatARateHoldsBackEndsWhenItIsCanceled(t *testing.T) {
	s, settings := newRangeServer(t, bytesOf(3<<20)), quick
	settings.Rate = 1
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := reader(t, settings).Get(ctx, source.Request{URL: s.URL}, new(sink).put); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Get: %v", err)
	}
}

func TestARequestThatFindsNoEndOfItsPartsIsNotTheUsersFault(t *testing.T) {
	s := newRangeServer(t, bytesOf(14<<20))
	s.refuse = func(_ int, r *http.Request, w http.ResponseWriter) bool {
		if r.Header.Get("Range") != "" {
			w.WriteHeader(http.StatusBadGateway)
		}
		return r.Header.Get("Range") != ""
	}
	_, err := reader(t, slow()).Get(t.Context(), source.Request{URL: s.URL}, new(sink).put)
	wantError(t, err, event.FetchFailed, event.ClassInfra, "502 Bad Gateway; tried 7 times")
}
