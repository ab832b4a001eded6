package analyst_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/benchmark-ai/bai/services/analyst"
	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
)

const (
	manyIndexed = 20_000 // points of one series, whose requests are counted
	writers     = 16     // that store points at a time
)

// requestCounter passes requests on to a server, and counts them by what they ask for.
type requestCounter struct {
	*httputil.ReverseProxy

	mu    sync.Mutex
	calls map[string]int
}

// ServeHTTP implements http.Handler.
func (c *requestCounter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	verb := path.Base(r.URL.Path)
	if !strings.HasPrefix(verb, "_") { // the ID of a document
		verb = path.Base(path.Dir(r.URL.Path))
	}
	c.mu.Lock()
	c.calls[r.Method+" "+verb]++
	c.mu.Unlock()
	c.ReverseProxy.ServeHTTP(w, r)
}

// take returns the requests since the last call.
func (c *requestCounter) take() (all map[string]int, total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all = maps.Clone(c.calls)
	clear(c.calls)
	for _, n := range all {
		total += n
	}
	return all, total
}

// openIndexed opens a store at an address of an Elasticsearch.
func openIndexed(t *testing.T, address, prefix string) *elastic.Store {
	t.Helper()
	s, err := elastic.Open(elastic.Settings{Prefix: prefix, Addresses: []string{address}, Refresh: 40 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// indexBarRuns stores the points of the runs of task long from one up to another, several at a time.
func indexBarRuns(t *testing.T, s *elastic.Store, from, to int) {
	t.Helper()
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(writers)
	for ; from < to; from++ {
		p := barRun("long", from, 1)
		g.Go(func() error { return s.PutPoints(ctx, p) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// awaitPoints returns once the points of a run can be read.
func awaitPoints(t *testing.T, s *elastic.Store, run string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; {
		all, err := s.RunPoints(t.Context(), []string{run}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the points of run %s are not visible after 5 minutes", run)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestAnAnalystKeepsItsBarOfRequestsToElasticsearch counts the requests of one run whose series has 100 and 20,000 points, if BAI_BARS is set.
func TestAnAnalystKeepsItsBarOfRequestsToElasticsearch(t *testing.T) {
	if os.Getenv("BAI_BARS") == "" {
		t.Skip("takes minutes: set BAI_BARS=1")
	}
	server := elasticsearch.Start(t)
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	counter := &requestCounter{ReverseProxy: httputil.NewSingleHostReverseProxy(target), calls: make(map[string]int)}
	front := httptest.NewServer(counter)
	t.Cleanup(front.Close)
	prefix := server.Prefix(t)
	direct, counted := openIndexed(t, server.URL, prefix), openIndexed(t, front.URL, prefix)
	if _, err := direct.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	step := analyst.Summarised(barDeps(counted), rule.Decide)
	var requests []string
	n := 0
	for _, size := range []int{100, manyIndexed} {
		begun := time.Now()
		indexBarRuns(t, direct, n, size)
		t.Logf("%d points stored in %s", size-n, time.Since(begun).Round(time.Second))
		for n = size; n < size+2; n++ { // the first run of all has the rules stored
			ev := putBarRun(t, direct, barRun("long", n, 1))
			awaitPoints(t, direct, ev.Run)
			counter.take()
			begun = time.Now()
			if _, err := step(t.Context(), ev); err != nil {
				t.Fatal(err)
			}
		}
		calls, total := counter.take()
		t.Logf("%d points: %d requests in %s, %v", size, total, time.Since(begun).Round(time.Millisecond), calls)
		requests = append(requests, fmt.Sprint(calls))
	}
	if requests[0] != requests[1] {
		t.Errorf("with 100 and with %d points: %q", manyIndexed, requests)
	}
}
