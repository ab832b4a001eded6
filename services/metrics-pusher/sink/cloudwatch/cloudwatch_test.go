package cloudwatch_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/smithy-go/encoding/cbor"
	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/cloudwatch"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/sinktest"
)

// fakeCloudWatch takes the requests that CloudWatch would take, in the protocol of the client: CBOR over HTTP.
type fakeCloudWatch struct {
	unavailable atomic.Bool
	failing     atomic.Int64 // number of the request that fails, from 1; counted down

	mu   sync.Mutex
	data []datum
	most int // data of one request
}

// datum is a datum as it came.
type datum struct {
	namespace, name, unit string
	dimensions            map[string]string
	second                int64
	resolution            uint64
	values, counts        []float64
}

// ServeHTTP implements http.Handler.
func (r *fakeCloudWatch) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err == nil {
			body, _ = io.ReadAll(z)
		}
	}
	w.Header().Set("Content-Type", "application/cbor")
	w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
	some, ok := read(body)
	switch {
	case r.unavailable.Load(), r.failing.Add(-1) == 0:
		fail(w, http.StatusServiceUnavailable, "ServiceUnavailable", "later")
	case !strings.HasSuffix(req.URL.Path, "/operation/PutMetricData") || !strings.Contains(req.Header.Get("Authorization"), "/eu-central-1/monitoring/"):
		fail(w, http.StatusForbidden, "AccessDenied", req.URL.Path)
	case !ok || slices.ContainsFunc(some, func(d datum) bool { return d.name == "forbidden" }):
		fail(w, http.StatusBadRequest, "InvalidParameterValueException", "the value is invalid")
	default:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.data, r.most = append(r.data, some...), max(r.most, len(some))
		_, _ = w.Write(cbor.Encode(cbor.Map{}))
	}
}

func fail(w http.ResponseWriter, status int, kind, message string) {
	w.WriteHeader(status)
	_, _ = w.Write(cbor.Encode(cbor.Map{"__type": cbor.String("com.amazonaws.cloudwatch#" + kind), "message": cbor.String(message)}))
}

// read returns the data of a request, and whether CloudWatch would take them.
func read(body []byte) (all []datum, ok bool) {
	v, err := cbor.Decode(body)
	in, isMap := v.(cbor.Map)
	if err != nil || !isMap {
		return nil, false
	}
	list, _ := in["MetricData"].(cbor.List)
	for _, one := range list {
		m, _ := one.(cbor.Map)
		d := datum{namespace: text(in["Namespace"]), name: text(m["MetricName"]), unit: text(m["Unit"]), dimensions: make(map[string]string)}
		dims, _ := m["Dimensions"].(cbor.List)
		for _, p := range dims {
			p, _ := p.(cbor.Map)
			d.dimensions[text(p["Name"])] = text(p["Value"])
		}
		if tag, isTag := m["Timestamp"].(*cbor.Tag); isTag {
			at, _ := tag.Value.(cbor.Float64)
			d.second = int64(at)
		}
		resolution, _ := m["StorageResolution"].(cbor.Uint)
		d.resolution, d.values, d.counts = uint64(resolution), numbers(m["Values"]), numbers(m["Counts"])
		if len(d.values) == 0 || len(d.values) > 150 || len(d.values) != len(d.counts) || d.second < time.Now().Add(-14*24*time.Hour).Unix() {
			return nil, false
		}
		all = append(all, d)
	}
	return all, len(all) > 0 && len(all) <= 1000
}

func text(v cbor.Value) string { s, _ := v.(cbor.String); return string(s) }

func numbers(v cbor.Value) (all []float64) {
	list, _ := v.(cbor.List)
	for _, x := range list {
		f, _ := x.(cbor.Float64)
		if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
			return nil
		}
		all = append(all, float64(f))
	}
	return all
}

func open(t *testing.T, s cloudwatch.Settings, now time.Time) (*fakeCloudWatch, *cloudwatch.Sink) {
	t.Helper()
	for k, v := range map[string]string{"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"} {
		t.Setenv(k, v)
	}
	r := &fakeCloudWatch{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	s.Region, s.Endpoint = "eu-central-1", server.URL
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	to, err := cloudwatch.New(t.Context(), s, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	return r, to
}

func TestTheContractOfASink(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Destination {
		t.Helper()
		r, to := open(t, cloudwatch.Settings{}, time.Now())
		return sinktest.Destination{
			Sink: to, RejectedMetric: "forbidden", // CloudWatch takes no ü: other tests cover such names
			Points: func(*testing.T) (all []sinktest.Point) {
				for _, d := range r.data {
					for i, v := range d.values {
						for range int(d.counts[i]) {
							all = append(all, sinktest.Point{Run: d.dimensions["run"], Metric: strings.ReplaceAll(d.name, "?", "ü"), Second: d.second, Value: v})
						}
					}
				}
				return all
			},
			SetUnavailable: func(_ *testing.T, away bool) { r.unavailable.Store(away) },
		}
	})
}

func TestSamplesOfOneSecondAreOneDatum(t *testing.T) {
	r, to := open(t, cloudwatch.Settings{Namespace: "Lab", Dimensions: []string{"owner", "labels.gpu", "attempt", "labels.none"}}, time.Now())
	b := sinktest.Metrics("r1", 0, "step", "step", "step", "step")
	for i := range b.Samples {
		b.Samples[i].Time, b.Samples[i].Unit = b.Samples[0].Time+int64(i), "ms"
		b.Samples[i].Set([]float64{2, 1, 2, 3}[i])
	}
	if err := to.Samples(t.Context(), []event.Metrics{b}); err != nil {
		t.Fatal(err)
	}
	want := []datum{{
		namespace: "Lab", name: "step", unit: "Milliseconds", dimensions: map[string]string{"owner": "ann", "gpu": "0", "attempt": "1"},
		second: sinktest.Start().Unix(), resolution: 1, values: []float64{1, 2, 3}, counts: []float64{1, 2, 1},
	}}
	if diff := cmp.Diff(want, r.data, cmp.AllowUnexported(datum{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRequestsAreNoLargerThanMayBe(t *testing.T) {
	r, to := open(t, cloudwatch.Settings{Minutes: true}, time.Now())
	b := sinktest.Metrics("r1", 0)
	for i := range 2500 { // of one minute, more values than one datum has, and more series than one request
		v := event.Sample{Seq: int64(i), Name: "many", Time: sinktest.Start().UnixNano() + int64(i)}
		v.Set(float64(i % 400))
		b.Samples = append(b.Samples, v)
		v.Name = strings.Repeat("n", 1+i%1200)
		v.Set(1)
		b.Samples = append(b.Samples, v)
	}
	if err := to.Samples(t.Context(), []event.Metrics{b}); err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, d := range r.data {
		if len(d.values) > 150 || len(d.name) > 255 || d.resolution != 60 || d.second%60 != 0 {
			t.Errorf("%d values of a name of %d characters at %d, resolution %d", len(d.values), len(d.name), d.second, d.resolution)
		}
		for _, n := range d.counts {
			total += n
		}
	}
	if total != 5000 || r.most > 1000 {
		t.Errorf("%v samples are there, %d data in one request", total, r.most)
	}
}

// threeRequests are samples that three requests take.
func threeRequests() event.Metrics {
	b := sinktest.Metrics("r1", 0)
	for i := range 2500 {
		v := event.Sample{Seq: int64(i), Name: fmt.Sprint("m", i), Time: sinktest.Start().UnixNano()}
		v.Set(float64(i))
		b.Samples = append(b.Samples, v)
	}
	return b
}

func TestSamplesCountOnceAlsoIfALaterRequestFails(t *testing.T) {
	for name, tt := range map[string]retried{
		"the first of three":                           {1, false, 2501},
		"the second of three":                          {2, false, 2501},
		"the third of three":                           {3, false, 2501},
		"one of the halves of a request with bad data": {5, true, 2500},
	} {
		t.Run(name, tt.check)
	}
}

// retried is a call of which a request fails, and which comes again.
type retried struct {
	failing int64 // number of the request
	rejects bool  // one of the samples is bad
	data    int   // that are there after the second call, which has one sample more
}

func (tt retried) check(t *testing.T) {
	r, to := open(t, cloudwatch.Settings{}, time.Now())
	b := threeRequests()
	if tt.rejects {
		b.Samples[1500].Name = "forbidden"
	}
	r.failing.Store(tt.failing)
	if err := to.Samples(t.Context(), []event.Metrics{b}); err == nil || strings.Contains(err.Error(), "refused") {
		t.Fatalf("Samples: %v, want an error for now", err)
	}
	other := sinktest.Metrics("r2", 7, "m7")
	err := to.Samples(t.Context(), []event.Metrics{b, other})
	if (err != nil) != tt.rejects || err != nil && !strings.Contains(err.Error(), "1 are refused") {
		t.Errorf("Samples again: %v", err)
	}
	if len(r.data) != tt.data {
		t.Errorf("%d data, want %d", len(r.data), tt.data)
	}
	if err := to.Samples(t.Context(), []event.Metrics{other}); err != nil || len(r.data) != tt.data+1 {
		t.Errorf("samples of a call that succeeded are remembered: %d data, %v", len(r.data), err)
	}
}

func TestWhatIsTooOldIsRefusedHere(t *testing.T) {
	_, to := open(t, cloudwatch.Settings{}, sinktest.Start().Add(15*24*time.Hour))
	err := to.Samples(t.Context(), []event.Metrics{sinktest.Metrics("r1", 0, "loss", "loss")})
	if err == nil || !strings.Contains(err.Error(), "2 are refused") {
		t.Errorf("Samples: %v, want 2 refused", err)
	}
}

func TestSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		settings cloudwatch.Settings
		want     string
	}{
		"no region":                {cloudwatch.Settings{}, "region: is needed"},
		"an endpoint that is none": {cloudwatch.Settings{Region: "x", Endpoint: "here"}, "endpoint: want a URL"},
		"Amazon's own namespace":   {cloudwatch.Settings{Region: "x", Namespace: "AWS/EC2"}, "do not begin with AWS/"},
		"an unknown dimension":     {cloudwatch.Settings{Region: "x", Dimensions: []string{"pod"}}, `"pod"`},
		"a dimension twice":        {cloudwatch.Settings{Region: "x", Dimensions: []string{"run", "run"}}, `"run"`},
		"a negative wait":          {cloudwatch.Settings{Region: "x", Timeout: -1}, "timeout"},
		"what works":               {cloudwatch.Settings{Region: "x", Dimensions: []string{"run", "labels.gpu"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := tt.settings.Validate()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Validate: %v, want %q", err, tt.want)
			}
		})
	}
}
