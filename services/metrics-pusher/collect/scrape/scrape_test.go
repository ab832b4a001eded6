package scrape_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/scrape"
)

// memoryAppender is an Appender that counts.
type memoryAppender struct {
	mu      sync.Mutex
	samples int
	dropped int64
	reason  string
}

func (a *memoryAppender) Append(samples []event.Sample) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.samples += len(samples)
	return nil
}

func (a *memoryAppender) Drop(n int64, reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dropped, a.reason = a.dropped+n, reason
}

// startReading reads the page of a server until Finish. It sends to failed after each connection that is refused.
func startReading(t *testing.T, server *httptest.Server, to scrape.Appender) (s *scrape.Scraper, failed <-chan struct{}) {
	t.Helper()
	refused := make(chan struct{}, 1)
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			select {
			case refused <- struct{}{}:
			default:
			}
		}
		return conn, err
	}
	s, err := scrape.Start(t.Context(), pod.Scrape{URLs: []string{server.URL}, Every: 5 * time.Millisecond}, dial, to, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return s, refused
}

func TestReadsThatFailedBeforeTheServerEndedAreCounted(t *testing.T) {
	var n atomic.Int64
	enough := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch n.Add(1) {
		case 1:
			_, _ = w.Write([]byte("a 1\n"))
			return
		case 5:
			close(enough)
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer server.Close()
	to := &memoryAppender{}
	s, refused := startReading(t, server, to)
	<-enough
	server.Close()
	<-refused // so all answers are recorded
	s.Finish()
	if want := n.Load() - 1; to.samples != 1 || to.dropped != want || !strings.Contains(to.reason, "could not be read: the answer is 500 Internal Server Error") {
		t.Errorf("%d samples, %d dropped because %q; want 1 and %d", to.samples, to.dropped, to.reason, want)
	}
}

func TestAServerThatEndsWithTheBenchmarkLacksNothing(t *testing.T) {
	enough := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("a 1\n"))
		select {
		case enough <- struct{}{}:
		default:
		}
	}))
	defer server.Close()
	to := &memoryAppender{}
	s, refused := startReading(t, server, to)
	<-enough
	server.Close()
	<-refused
	s.Finish()
	if to.samples == 0 || to.dropped != 0 {
		t.Errorf("%d samples, %d dropped because %q", to.samples, to.dropped, to.reason)
	}
}

func TestAServerThatDoesNotAnswerInTimeIsCounted(t *testing.T) {
	var n atomic.Int64
	hangs := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 {
			_, _ = w.Write([]byte("a 1\n"))
			return
		}
		if n.Load() == 2 {
			close(hangs)
		}
		<-r.Context().Done()
	}))
	defer server.Close()
	to := &memoryAppender{}
	s, _ := startReading(t, server, to)
	<-hangs
	s.Finish()
	if to.samples != 1 || to.dropped == 0 || !strings.Contains(to.reason, "could not be read: the server did not answer in time") {
		t.Errorf("%d samples, %d dropped because %q", to.samples, to.dropped, to.reason)
	}
}
