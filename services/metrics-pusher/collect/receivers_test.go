package collect_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metricsv1 "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// gauge is a message of one data point.
func gauge(tb testing.TB, name string, value float64, at int64) []byte {
	tb.Helper()
	b, err := proto.Marshal(&metricsv1.MetricsData{ResourceMetrics: []*metricsv1.ResourceMetrics{{ScopeMetrics: []*metricsv1.ScopeMetrics{{
		Metrics: []*metricsv1.Metric{{Name: name, Unit: "1", Data: &metricsv1.Metric_Gauge{Gauge: &metricsv1.Gauge{DataPoints: []*metricsv1.NumberDataPoint{{
			TimeUnixNano: uint64(at), Value: &metricsv1.NumberDataPoint_AsDouble{AsDouble: value},
		}}}}}},
	}}}}})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// endpoint waits until the collector of a volume listens, and returns its URL.
func endpoint(tb testing.TB, v volume, store *fakeStore) string {
	tb.Helper()
	var url []byte
	store.waitUntil(tb, func() bool {
		var err error
		url, err = os.ReadFile(filepath.Join(v.dir, pod.OTLPURL))
		return err == nil
	})
	return string(url)
}

// post sends a message, and retries until the collector answers. While the collector does not listen, that of another test may listen at
// the same address, which refuses the key.
func post(tb testing.TB, url string, body []byte) int {
	tb.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		resp, err := http.Post(url, "application/x-protobuf", bytes.NewReader(body))
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusNotFound {
				return resp.StatusCode
			}
			err = errors.New(resp.Status)
		}
		if time.Now().After(end) {
			tb.Fatal(err)
		}
	}
}

func TestNumbersThatProgramsSendAreShippedOnce(t *testing.T) {
	v := newVolume(t)
	s := settings(v)
	s.OTLP = true
	store := newStore(t)
	done := start(t, s, store)
	url := endpoint(t, v, store)
	for i := range 3 {
		body := gauge(t, "load", float64(i), int64(i+1)*1e6)
		for range 2 { // the answer to the first request was lost
			if code := post(t, url, body); code != http.StatusOK {
				t.Fatal(code)
			}
		}
	}
	if code := post(t, url, []byte("nonsense")); code != http.StatusBadRequest {
		t.Error(code)
	}
	v.exit(t, pod.Exit{})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want(t, store.samples(), []string{
		"otlp 48.0 load=0 1 at 1000000", "otlp 96.0 load=1 1 at 2000000", "otlp 144.0 load=2 1 at 3000000",
	})
	end := store.end(event.StreamOTLP, event.TopicMetrics)
	if end.Count != 3 || end.Dropped != 1 || !strings.Contains(end.Reason, "output.otlp: a request was refused") {
		t.Errorf("it ends with %+v", end)
	}
	store.complete(t)
}

func TestANewCollectorListensWhereTheOldOneDid(t *testing.T) {
	v := newVolume(t)
	s := settings(v)
	s.OTLP = true
	store := newStore(t)
	body := gauge(t, "load", 7, 1e6)
	ctx, kill := context.WithCancel(t.Context())
	killed := make(chan struct{})
	store.refuse = func(ev event.Event) error { // the first collector ends before its ends are published
		if m, ok := ev.(event.Metrics); ok && m.End != nil && ctx.Err() != nil {
			select {
			case <-killed:
			default:
				return context.Canceled
			}
		}
		return nil
	}
	first := make(chan error, 1)
	c := collector(t, s, store)
	go func() { first <- c.Run(ctx) }()
	url := endpoint(t, v, store)
	if code := post(t, url, body); code != http.StatusOK {
		t.Fatal(code)
	}
	kill()
	if err := <-first; err == nil {
		t.Fatal("it ended well")
	}
	close(killed)
	second := start(t, s, store)
	if code := post(t, url, body); code != http.StatusOK { // sent again by a program that had no answer
		t.Fatal(code)
	}
	if code := post(t, url, gauge(t, "load", 8, 2e6)); code != http.StatusOK {
		t.Fatal(code)
	}
	v.exit(t, pod.Exit{})
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	want(t, store.samples(), []string{"otlp 48.0 load=7 1 at 1000000", "otlp 96.0 load=8 1 at 2000000"})
	store.complete(t)
}

func TestAPageOfPrometheusIsReadUntilTheEnd(t *testing.T) {
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "# TYPE train_steps_total counter\ntrain_steps_total{rank=\"0\"} %d\nother 1\n", n.Add(1))
	}))
	defer server.Close()
	v := newVolume(t)
	s := settings(v)
	s.Scrape = pod.Scrape{URLs: []string{server.URL, "http://127.0.0.1:1/metrics"}, Every: 20 * time.Millisecond, Names: "^train_"}
	store := newStore(t)
	done := start(t, s, store)
	store.waitUntil(t, func() bool { return len(store.samples()) >= 3 })
	v.exit(t, pod.Exit{})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	all := store.samples()
	if !slices.IsSortedFunc(all, func(a, b string) int { return cmp.Compare(lastNumber(a), lastNumber(b)) }) || lastNumber(all[len(all)-1]) != n.Load() {
		t.Errorf("%d pages, and %q", n.Load(), all)
	}
	end := store.end(event.StreamScraped, event.TopicMetrics)
	if end.Count != int64(len(all)) || end.Dropped != 1 || end.Reason != "output.prometheus: http://127.0.0.1:1/metrics could not be read: connection refused: nothing was ever read there" {
		t.Errorf("it ends with %+v", end)
	}
	store.complete(t)
}

// lastNumber returns the value at the end of a sample's text. A page that was being read at the end has no sample: numbers may be missing.
func lastNumber(sample string) int64 {
	n, err := strconv.ParseInt(sample[strings.LastIndexByte(sample, '=')+1:], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func TestABadLineOfAPageIsSaidNotThatNobodyAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		page    string
		samples bool
		reason  string
	}{
		"one bad line":    {"a 1\nbroken line here\n", true, ` line 2: "broken line here" is not in the text format: `},
		"no page at all":  {"<html>\n", false, ` could not be read: read the text format of Prometheus: line 1: "<html>" is not in the text format: `},
		"another failure": {"", false, " could not be read: the answer is 404 Not Found: nothing was ever read there"},
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if tt.page == "" {
					w.WriteHeader(http.StatusNotFound)
				}
				_, _ = io.WriteString(w, tt.page)
				n.Add(1)
			}))
			defer server.Close()
			v := newVolume(t)
			s := settings(v)
			s.Scrape = pod.Scrape{URLs: []string{server.URL}, Every: 10 * time.Millisecond}
			store := newStore(t)
			done := start(t, s, store)
			store.waitUntil(t, func() bool { return n.Load() > 3 && (!tt.samples || len(store.samples()) > 1) })
			server.Close() // as the benchmark's end closes it
			v.exit(t, pod.Exit{})
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			end := store.end(event.StreamScraped, event.TopicMetrics)
			if end.Dropped < 1 || !strings.Contains(end.Reason, tt.reason) || strings.Contains(end.Reason, "refused") || tt.samples != (end.Count > 0) {
				t.Errorf("it ends with %+v", end)
			}
		})
	}
}

// TestTheSamplesOfSeveralPagesAreSeriesOfTheirOwn: metrics of the same name on two pages are two series.
func TestTheSamplesOfSeveralPagesAreSeriesOfTheirOwn(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "m 1 5000\n") })
	a, b := httptest.NewServer(page), httptest.NewServer(page)
	defer a.Close()
	defer b.Close()
	v := newVolume(t)
	s := settings(v)
	s.Scrape = pod.Scrape{URLs: []string{a.URL, b.URL}, Every: time.Hour}
	store := newStore(t)
	done := start(t, s, store)
	store.waitUntil(t, func() bool { return len(store.samples()) == 2 })
	v.exit(t, pod.Exit{})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	store.each(func(_ string, sample event.Sample) { got["http://"+sample.Labels["instance"]] = true })
	want(t, got, map[string]bool{a.URL: true, b.URL: true})
}

func TestTooManySeriesAreSaid(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range extract.MaxSeries + 10 {
			_, _ = fmt.Fprintf(w, "m{n=\"%d\"} 1 5000\n", i) // of one time: the same samples again and again
		}
	}))
	defer server.Close()
	v := newVolume(t)
	s := settings(v)
	s.Scrape = pod.Scrape{URLs: []string{server.URL}, Every: time.Hour}
	store := newStore(t)
	done := start(t, s, store)
	store.waitUntil(t, func() bool { return len(store.samples()) == extract.MaxSeries })
	v.exit(t, pod.Exit{})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want(t, store.end(event.StreamScraped, event.TopicMetrics), event.End{
		Count: extract.MaxSeries, Last: store.last(event.StreamScraped), Dropped: 20, Reason: "output.prometheus: " + extract.TooManySeries(extract.MaxSeries),
	})
}

func TestWhatATornWriteLeftInASpoolIsNotShipped(t *testing.T) {
	v := newVolume(t)
	v.append(t, pod.OTLP, `{"a": 1, "@time": 5.000000000}`+"\n"+`{"b": 2, "@ti`)
	v.exit(t, pod.Exit{})
	s := settings(v)
	s.OTLP = true
	store := newStore(t)
	collectAll(t, s, store)
	want(t, store.samples(), []string{"otlp 31.0 a=1 at 5000000000"})
	want(t, store.end(event.StreamOTLP, event.TopicMetrics), event.End{Count: 1, Last: 31})
}

func TestAnAddressThatIsTakenIsNotTakenAway(t *testing.T) {
	usual, err := net.Listen("tcp", "127.0.0.1:4318")
	if err == nil {
		defer usual.Close() //nolint:errcheck // a test's
	}
	v := newVolume(t)
	s := settings(v)
	s.OTLP = true
	store := newStore(t)
	done := start(t, s, store)
	if url := endpoint(t, v, store); url == pod.DefaultOTLP {
		t.Errorf("it listens at %s, where another does", url)
	}
	v.exit(t, pod.Exit{})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsInBlocksOfTheOutputIsShippedOnceWhateverStops(t *testing.T) {
	v := newVolume(t)
	s := settings(v)
	s.Metrics = []pod.Metric{
		{Name: "line", Pattern: `loss=(\d)`},
		{Name: "block", Pattern: `(?s)^epoch.*loss=(\d)`, Parser: extract.ParserBlocks, Block: pod.Block{Begin: "^epoch", Within: math.MaxInt64}}, // the lines are of 1970
	}
	v.record(t, stdoutRecord("epoch 1\nloss=1\nepoch 2\nlo"), stderrRecord("epoch 9\nloss=9\n"), stdoutRecord("ss=2\nepoch 3\n"))
	store := newStore(t)
	ctx, stop := context.WithCancel(t.Context())
	c := collector(t, s, store)
	first := make(chan error, 1)
	go func() { first <- c.Run(ctx) }()
	store.waitUntil(t, func() bool { return len(store.lines()) == 7 })
	store.mu.Lock()
	store.refuse = func(event.Event) error { return context.Canceled }
	store.mu.Unlock()
	stop()
	if err := <-first; err == nil {
		t.Fatal("it ended well")
	}
	store.mu.Lock()
	store.refuse = nil
	store.mu.Unlock()
	v.record(t, stdoutRecord("loss=3\n"))
	v.exit(t, pod.Exit{})
	collectAll(t, s, store)
	want(t, store.samples(), []string{
		"output 28.0 line=1 at 1", "output 29.0 block=1 at 1", "output 66.0 line=9 at 2", "output 67.0 block=9 at 2",
		"output 84.0 line=2 at 1", "output 85.0 block=2 at 1", "output 112.0 line=3 at 1", "output 113.0 block=3 at 1",
	})
	store.complete(t)
}

func TestABlockThatEndedByTimeIsCountedOnceAfterAKill(t *testing.T) {
	for name, more := range map[string][]pod.Record{
		"when nothing follows":   nil,
		"when a line follows":    {stdoutRecord("loss=2\n")},
		"when a block follows":   {stdoutRecord("epoch 2\n")},
		"when its line goes on":  {stderrRecord(" done\n")},
		"when both streams grow": {stderrRecord(" done\n"), stdoutRecord("epoch 2\nno number\n")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVolume(t)
			s := settings(v)
			s.Metrics = []pod.Metric{{
				Name: "block", Pattern: `(?s)^epoch.*loss=(\d)`, Parser: extract.ParserBlocks,
				Block: pod.Block{Begin: "^epoch", Within: time.Second}, // the lines are of 1970: each block is over at once
			}}
			v.record(t, stderrRecord("10%"), stdoutRecord("epoch 1\nloss=1\n"))
			store := newStore(t)
			collectUntil(t, s, store, func() bool {
				return len(store.samples()) == 1 && strings.Contains(v.saved(), `"samples":{"count":1,`)
			})
			v.record(t, more...)
			v.exit(t, pod.Exit{})
			collectAll(t, s, store)
			want(t, store.samples(), []string{"output 45.0 block=1 at 1"})
			store.complete(t)
		})
	}
}
