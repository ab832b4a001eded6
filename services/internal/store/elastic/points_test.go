package elastic_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
)

// proxy passes requests on to a server, counts them, and may refuse bulk requests.
type proxy struct {
	*httputil.ReverseProxy

	requests atomic.Int64
	cut      atomic.Bool
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.requests.Add(1)
	if p.cut.Load() && strings.HasSuffix(r.URL.Path, "/_bulk") {
		w.Header().Set("X-Elastic-Product", "Elasticsearch")
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	p.ReverseProxy.ServeHTTP(w, r)
}

// openProxy opens an empty store behind a proxy.
func openProxy(t *testing.T, server *elasticsearch.Server) (*elastic.Store, *proxy) {
	t.Helper()
	target, err := url.Parse(server.URL)
	check(t, err)
	p := &proxy{ReverseProxy: httputil.NewSingleHostReverseProxy(target)}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	s, err := elastic.Open(elastic.Settings{Prefix: newPrefix(t, server), Addresses: []string{front.URL}, Refresh: 40 * time.Millisecond})
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	setUp(t, s)
	return s, p
}

// lossKey is the series of the points that storetest.NewPoints returns.
func lossKey() store.SeriesKey {
	return storetest.NewPoints("", time.Time{}, 0).Key(storetest.NewValue("loss", 0))
}

func startOfMarch(second int) time.Time { return time.Date(2026, 3, 4, 5, 6, second, 0, time.UTC) }

func testPointRequests(t *testing.T, server *elasticsearch.Server) {
	t.Helper()
	s, p := openProxy(t, server)
	counts := make(map[string][]int64)
	measure := func(name string, do func() error) {
		t.Helper()
		before := p.requests.Load()
		check(t, do())
		counts[name] = append(counts[name], p.requests.Load()-before)
	}
	stored := 0
	for _, n := range []int{40, 400} {
		var runs []string
		for ; stored < n; stored++ {
			runs = append(runs, ulidOf(stored))
			put := storetest.NewPoints(ulidOf(stored), startOfMarch(stored), float64(stored))
			put.Points = append(put.Points, storetest.NewValue("speed", 1))
			check(t, s.PutPoints(t.Context(), put))
		}
		eventually(t, "all are visible", func() (bool, error) {
			series, _, err := s.Series(t.Context(), store.SeriesQuery{}, "", 10)
			return len(series) == 2 && series[1].Points == int64(n), err
		})
		measure("put", func() error {
			return s.PutPoints(t.Context(), storetest.NewPoints(fmt.Sprint("next", n), startOfMarch(stored), 1))
		})
		measure("points", func() error {
			points, err := s.Points(t.Context(), store.PointQuery{Series: lossKey()}, 20)
			if err == nil && len(points) != 20 {
				err = fmt.Errorf("%d points, want 20", len(points))
			}
			return err
		})
		measure("points of runs", func() error {
			all, err := s.RunPoints(t.Context(), runs[:30], []string{"speed"})
			if err == nil && len(all) != 30 {
				err = fmt.Errorf("points of %d runs, want 30", len(all))
			}
			return err
		})
		measure("series", func() error { _, _, err := s.Series(t.Context(), store.SeriesQuery{Task: "train"}, "", 1); return err })
	}
	want := map[string][]int64{"put": {5, 5}, "points": {2, 2}, "points of runs": {2, 2}, "series": {1, 1}}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("requests with 40 and with 400 points (-want +got):\n%s", diff)
	}
}

func testCutPoints(t *testing.T, server *elasticsearch.Server) {
	t.Helper()
	s, p := openProxy(t, server)
	read := func() string {
		all, err := s.RunPoints(t.Context(), []string{"r"}, nil)
		check(t, err)
		points, err := s.Points(t.Context(), store.PointQuery{Series: lossKey()}, 10)
		check(t, err)
		text := fmt.Sprint(len(points), " in the series")
		for _, one := range all {
			text += fmt.Sprintf(", revision %d with %d", one.Revision, len(one.Points))
		}
		return text
	}
	first := storetest.NewPoints("r", startOfMarch(0), 1)
	for revision, want := range []string{"1 in the series, revision 0 with 1", "1 in the series, revision 1 with 2"} {
		first.Revision = int64(revision)
		p.cut.Store(true)
		if err := s.PutPoints(t.Context(), first); err == nil || errors.Is(err, store.ErrRefused) {
			t.Errorf("cut: %v, want that the server is away", err)
		}
		if got := read(); got != "0 in the series" {
			t.Errorf("after the cut: %s", got)
		}
		p.cut.Store(false)
		check(t, s.PutPoints(t.Context(), first))
		eventually(t, want, func() (bool, error) { return read() == want, nil })
		first.Points = append(first.Points, storetest.NewValue("speed", 1))
	}
}

func testConcurrentPoints(t *testing.T, server *elasticsearch.Server) {
	t.Helper()
	s := open(t, server, elastic.Settings{})
	var wg sync.WaitGroup
	for revision := range int64(8) {
		wg.Go(func() {
			p := storetest.NewPoints("r", startOfMarch(0), float64(revision))
			p.Revision = revision
			for i := range (5 * revision) % 8 {
				p.Points = append(p.Points, storetest.NewValue(fmt.Sprint("m", i), float64(revision)))
			}
			for range 2 {
				if err := s.PutPoints(t.Context(), p); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	eventually(t, "those of the last are there", func() (bool, error) {
		all, err := s.RunPoints(t.Context(), []string{"r"}, nil)
		series, _, seriesErr := s.Series(t.Context(), store.SeriesQuery{}, "", 10)
		return len(all) == 1 && all[0].Revision == 7 && len(all[0].Points) == 4 && all[0].Points[3].Median == 7 && len(series) == 4, errors.Join(err, seriesErr)
	})
}
