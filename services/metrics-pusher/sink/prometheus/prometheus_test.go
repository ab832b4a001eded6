package prometheus_test

import (
	"encoding/binary"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/post"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/prometheus"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/sinktest"
)

// fakeReceiver takes remote writes as Prometheus does: in the order of time for each series, a request whole or not at all.
type fakeReceiver struct {
	unavailable atomic.Bool

	mu       sync.Mutex
	requests int
	last     map[string]remoteSample // of each series
	points   []sinktest.Point
	series   []map[string]string
}

type remoteSample struct {
	ms    int64
	value float64
}

// ServeHTTP implements http.Handler.
func (r *fakeReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	body, _ := io.ReadAll(req.Body)
	text, err := snappy.Decode(nil, body)
	switch {
	case r.unavailable.Load():
		http.Error(w, "later", http.StatusServiceUnavailable)
	case err != nil || req.Header.Get("Content-Encoding") != "snappy" || req.Header.Get("X-Prometheus-Remote-Write-Version") != "0.1.0":
		http.Error(w, "no remote write", http.StatusUnsupportedMediaType)
	default:
		r.take(w, text)
	}
}

// take takes all series of a request, or none.
func (r *fakeReceiver) take(w http.ResponseWriter, text []byte) {
	last, points, series := maps.Clone(r.last), r.points, r.series
	for _, s := range fields(text, 1) {
		labels, key, ok := parseLabels(s)
		if !ok {
			http.Error(w, "labels are not sorted, or forbidden", http.StatusBadRequest)
			return
		}
		for _, b := range fields(s, 2) {
			v := read(b)
			before, ok := last[key]
			if ok && (v.ms < before.ms || v.ms == before.ms && math.Float64bits(v.value) != math.Float64bits(before.value)) {
				http.Error(w, "out of order sample", http.StatusBadRequest)
				return
			}
			last[key] = v
			if !ok || v.ms > before.ms {
				points = append(points, point(labels, v))
			}
		}
		series = append(series, labels)
	}
	r.last, r.points, r.series = last, points, series
	w.WriteHeader(http.StatusNoContent)
}

// parseLabels returns the labels of a series, also as one text, and whether they are as
// they should be.
func parseLabels(s []byte) (labels map[string]string, key string, ok bool) {
	labels = make(map[string]string)
	var names []string
	for _, l := range fields(s, 1) {
		name, value := string(fields(l, 1)[0]), string(fields(l, 2)[0])
		labels[name] = value
		names = append(names, name)
		key += name + "=" + value + ","
	}
	return labels, key, slices.IsSorted(names) && labels["__name__"] != "bai_forbidden"
}

func point(labels map[string]string, v remoteSample) sinktest.Point {
	name, ok := labels["metric"]
	if !ok {
		name = strings.TrimPrefix(labels["__name__"], "bai_")
	}
	return sinktest.Point{Run: labels["run"], Metric: name, Second: v.ms / 1000, Value: v.value}
}

// fields returns every field of a number of a message of Protocol Buffers.
func fields(b []byte, number protowire.Number) (all [][]byte) {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		b = b[size:]
		value := b[:protowire.ConsumeFieldValue(n, kind, b)]
		b = b[len(value):]
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		if n == number {
			all = append(all, value)
		}
	}
	return all
}

func read(b []byte) remoteSample {
	ms, _ := protowire.ConsumeVarint(fields(b, 2)[0])
	return remoteSample{ms: int64(ms), value: math.Float64frombits(binary.LittleEndian.Uint64(fields(b, 1)[0]))} //nolint:gosec // as protobuf has negative numbers
}

func open(t *testing.T, s prometheus.Settings) (*fakeReceiver, *prometheus.Sink) {
	t.Helper()
	r := &fakeReceiver{last: make(map[string]remoteSample)}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	s.Settings = post.Settings{URL: server.URL + "/api/v1/write"}
	to, err := prometheus.New(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = to.Close() })
	return r, to
}

func TestTheContractOfASink(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Destination {
		t.Helper()
		r, to := open(t, prometheus.Settings{})
		return sinktest.Destination{
			Sink: to, Deduplicates: true, Specials: true, RejectedMetric: "forbidden",
			Points:         func(*testing.T) []sinktest.Point { return slices.Clone(r.points) },
			SetUnavailable: func(_ *testing.T, away bool) { r.unavailable.Store(away) },
		}
	})
}

func TestASeriesSaysWhereItsSamplesComeFrom(t *testing.T) {
	r, to := open(t, prometheus.Settings{Labels: map[string]string{"lab": "north", "owner": "us"}})
	b := sinktest.Metrics("r1", 0, "images/s")
	b.Samples[0].Labels = map[string]string{"gpu": "0", "run": "mine", "a.b": "1", "a-b": "2", "__name__": "x", "empty": "", "bad\xff": "\xff"}
	if err := to.Samples(t.Context(), []event.Metrics{b}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"__name__": "bai_images_s", "metric": "images/s", "run": "r1", "namespace": "pets", "attempt": "1", "role": "benchmark", "index": "0",
		"container": "benchmark", "stream": event.StreamMetrics, "unit": "s", "lab": "north", "owner": "us",
		"gpu": "0", "label_run": "mine", "a_b": "2", "label_a_b": "1", "label_name__": "x", "bad_": "\uFFFD",
	}
	if diff := cmp.Diff([]map[string]string{want}, r.series); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOfOneMillisecondTheLastSampleStaysAndOthersCount(t *testing.T) {
	r, to := open(t, prometheus.Settings{})
	b := sinktest.Metrics("r1", 0, "loss", "loss", "loss")
	for i := range b.Samples {
		b.Samples[i].Time = b.Samples[0].Time + int64(i)
	}
	err := to.Samples(t.Context(), []event.Metrics{b})
	if err == nil || !strings.Contains(err.Error(), "2 are refused") {
		t.Errorf("Samples: %v, want 2 refused", err)
	}
	if len(r.points) != 1 || r.points[0].Value != 2.5 {
		t.Errorf("there are %v, want the last", r.points)
	}
}

func TestThatEverythingIsRefusedIsFoundOutInFewRequests(t *testing.T) {
	r, to := open(t, prometheus.Settings{})
	b := sinktest.Metrics("r1", 0)
	for i := range 5000 {
		v := event.Sample{Seq: int64(i), Name: "forbidden", Time: sinktest.Start().Add(time.Duration(i) * time.Second).UnixNano()}
		v.Set(1)
		b.Samples = append(b.Samples, v)
	}
	if err := to.Samples(t.Context(), []event.Metrics{b}); err == nil || !strings.Contains(err.Error(), "5000 are refused") {
		t.Errorf("Samples: %v, want all refused", err)
	}
	if r.requests > 250 {
		t.Errorf("%d requests", r.requests)
	}
}

func TestSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		settings prometheus.Settings
		want     string
	}{
		"no URL":                {prometheus.Settings{}, "sinks.prometheus.url"},
		"a password in the URL": {prometheus.Settings{Settings: post.Settings{URL: "http://a:b@c/"}}, "must not hold a password"},
		"a user without":        {prometheus.Settings{Settings: post.Settings{URL: "http://c/", Username: "a"}}, "go together"},
		"two who speak":         {prometheus.Settings{Settings: post.Settings{URL: "http://c/", Username: "a", PasswordFile: "b", TokenFile: "c"}}, "not both"},
		"a negative wait":       {prometheus.Settings{Settings: post.Settings{URL: "http://c/", Timeout: -1}}, "timeout"},
		"a label that is none":  {prometheus.Settings{Settings: post.Settings{URL: "http://c/"}, Labels: map[string]string{"a-b": "1"}}, `"a-b"`},
		"what works":            {prometheus.Settings{Settings: post.Settings{URL: "http://c/"}, Labels: map[string]string{"lab": "1"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := tt.settings.Validate()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Validate: %v, want %q", err, tt.want)
			}
		})
	}
}

// TestWhatAPlaceAnswersDecides has a place answer each status.
func TestWhatAPlaceAnswersDecides(t *testing.T) {
	for status, refused := range map[int]bool{200: false, 204: false, 302: false, 400: true, 401: false, 403: false, 404: false, 413: true, 422: true, 429: false, 500: false, 503: false} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
			}))
			defer server.Close()
			to, err := prometheus.New(prometheus.Settings{Settings: post.Settings{URL: server.URL}})
			if err != nil {
				t.Fatal(err)
			}
			err = to.Samples(t.Context(), []event.Metrics{sinktest.Metrics("r", 0, "loss")})
			if (err == nil) != (status/100 == 2) || err != nil && strings.Contains(err.Error(), "refused") != refused {
				t.Errorf("Samples: %v, refused is to be %t", err, refused)
			}
		})
	}
}
