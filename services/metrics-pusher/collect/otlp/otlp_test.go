package otlp_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	collectorv1 "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	metricsv1 "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcev1 "go.opentelemetry.io/proto/otlp/resource/v1"
	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/otlp"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// show returns samples as "name{labels} value unit".
func show(samples []event.Sample) []string {
	var all []string
	for _, s := range samples {
		text := s.Name
		if s.Labels != nil {
			var labels []string
			for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
				labels = append(labels, k+"="+s.Labels[k])
			}
			text += "{" + strings.Join(labels, ",") + "}"
		}
		all = append(all, strings.TrimSpace(fmt.Sprint(text, " ", s.Float(), " ", s.Unit)))
	}
	return all
}

func label(key, value string) *commonv1.KeyValue {
	return &commonv1.KeyValue{Key: key, Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_StringValue{StringValue: value}}}
}

func double(v float64, labels ...*commonv1.KeyValue) *metricsv1.NumberDataPoint {
	return &metricsv1.NumberDataPoint{TimeUnixNano: 1e9, Attributes: labels, Value: &metricsv1.NumberDataPoint_AsDouble{AsDouble: v}}
}

func whole(v int64) *metricsv1.NumberDataPoint {
	return &metricsv1.NumberDataPoint{TimeUnixNano: 1e9, Value: &metricsv1.NumberDataPoint_AsInt{AsInt: v}}
}

// message is one of metrics of one resource.
func message(resource []*commonv1.KeyValue, metrics ...*metricsv1.Metric) *metricsv1.MetricsData {
	return &metricsv1.MetricsData{ResourceMetrics: []*metricsv1.ResourceMetrics{{
		Resource: &resourcev1.Resource{Attributes: resource}, ScopeMetrics: []*metricsv1.ScopeMetrics{{Metrics: metrics}},
	}}}
}

func gauge(name, unit string, points ...*metricsv1.NumberDataPoint) *metricsv1.Metric {
	return &metricsv1.Metric{Name: name, Unit: unit, Data: &metricsv1.Metric_Gauge{Gauge: &metricsv1.Gauge{DataPoints: points}}}
}

func sum(temporality metricsv1.AggregationTemporality, points ...*metricsv1.NumberDataPoint) *metricsv1.Metric {
	return &metricsv1.Metric{Name: "s", Data: &metricsv1.Metric_Sum{Sum: &metricsv1.Sum{AggregationTemporality: temporality, DataPoints: points}}}
}

func histogram(p *metricsv1.HistogramDataPoint) *metricsv1.Metric {
	return &metricsv1.Metric{Name: "h", Unit: "ms", Data: &metricsv1.Metric_Histogram{Histogram: &metricsv1.Histogram{
		AggregationTemporality: metricsv1.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE, DataPoints: []*metricsv1.HistogramDataPoint{p},
	}}}
}

func TestSamplesOfAMessage(t *testing.T) {
	const cumulative, delta = metricsv1.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE, metricsv1.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
	many := make([]*commonv1.KeyValue, 40)
	for i := range many {
		many[i] = label(fmt.Sprint("k", i), "v")
	}
	nested := &commonv1.KeyValue{Key: "k", Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_ArrayValue{ArrayValue: &commonv1.ArrayValue{Values: []*commonv1.AnyValue{
		{Value: &commonv1.AnyValue_IntValue{IntValue: 1}}, {Value: &commonv1.AnyValue_BoolValue{BoolValue: true}}, {},
	}}}}}
	tests := map[string]struct {
		data    *metricsv1.MetricsData
		want    []string
		refused int64
	}{
		"a gauge's point is one":              {message(nil, gauge("g", "B", double(2.5, label("x", "1")), whole(-3))), []string{"g{x=1} 2.5 B", "g -3 B"}, 0},
		"specials are values":                 {message(nil, gauge("g", "", double(math.NaN()), double(math.Inf(1)))), []string{"g NaN", "g +Inf"}, 0},
		"a sum from the start":                {message(nil, sum(cumulative, whole(7))), []string{"s 7"}, 0},
		"a sum from one time to the next":     {message(nil, sum(delta, whole(7))), []string{"s{temporality=delta} 7"}, 0},
		"the name that a service gives":       {message([]*commonv1.KeyValue{label("service.name", "train"), label("host.name", "h")}, gauge("g", "", whole(1))), []string{"g{service.name=train} 1"}, 0},
		"not one that it was given":           {message([]*commonv1.KeyValue{label("service.name", "unknown_service:python")}, gauge("g", "", whole(1))), []string{"g 1"}, 0},
		"attributes of several values":        {message(nil, gauge("g", "", double(1, nested))), []string{`g{k=["1","true",""]} 1`}, 0},
		"nothing was recorded":                {message(nil, gauge("g", "", &metricsv1.NumberDataPoint{Flags: 1})), nil, 0},
		"a point without a value is refused":  {message(nil, gauge("g", "", &metricsv1.NumberDataPoint{})), nil, 1},
		"so is one without a name":            {message(nil, gauge("", "", whole(1))), nil, 1},
		"and one with too many attributes":    {message(nil, gauge("g", "", double(1, many...))), nil, 1},
		"and one with a label too long":       {message(nil, gauge("g", "", double(1, label("x", strings.Repeat("y", 300))), double(2, label("x", "y")))), []string{"g{x=y} 2"}, 1},
		"a histogram has its buckets":         {message(nil, histogram(&metricsv1.HistogramDataPoint{Count: 6, Sum: proto.Float64(12), Min: proto.Float64(1), Max: proto.Float64(5), ExplicitBounds: []float64{2, 4}, BucketCounts: []uint64{1, 2, 3}})), []string{"h.count 6 1", "h.sum 12 ms", "h.min 1 ms", "h.max 5 ms", "h.bucket{le=2} 1 1", "h.bucket{le=4} 3 1", "h.bucket{le=+Inf} 6 1"}, 0},
		"a histogram without any":             {message(nil, histogram(&metricsv1.HistogramDataPoint{Count: 6})), []string{"h.count 6 1"}, 0},
		"buckets that do not fit are refused": {message(nil, histogram(&metricsv1.HistogramDataPoint{Count: 6, BucketCounts: []uint64{1, 2}})), nil, 1},
		"an exponential histogram": {message(nil, &metricsv1.Metric{Name: "e", Data: &metricsv1.Metric_ExponentialHistogram{ExponentialHistogram: &metricsv1.ExponentialHistogram{
			AggregationTemporality: delta, DataPoints: []*metricsv1.ExponentialHistogramDataPoint{{Count: 2, Sum: proto.Float64(3)}},
		}}}), []string{"e.count{temporality=delta} 2 1", "e.sum{temporality=delta} 3"}, 0},
		"a summary": {message(nil, &metricsv1.Metric{Name: "q", Data: &metricsv1.Metric_Summary{Summary: &metricsv1.Summary{DataPoints: []*metricsv1.SummaryDataPoint{{
			Count: 2, Sum: 3, QuantileValues: []*metricsv1.SummaryDataPoint_ValueAtQuantile{{Quantile: 0.99, Value: 5}},
		}}}}}), []string{"q.count 2 1", "q.sum 3", "q{quantile=0.99} 5"}, 0},
		"a metric without data has none": {message(nil, &metricsv1.Metric{Name: "x"}), nil, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, refused := otlp.Samples(tt.data)
			if diff := cmp.Diff(tt.want, show(got)); diff != "" || refused != tt.refused {
				t.Errorf("%d refused, want %d; (-want +got):\n%s", refused, tt.refused, diff)
			}
		})
	}
}

// memoryAppender stores samples in memory.
type memoryAppender struct {
	mu      sync.Mutex
	err     error
	samples []event.Sample
	dropped int64
}

// Append implements otlp.Keeper.
func (k *memoryAppender) Append(samples []event.Sample) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		k.samples = append(k.samples, samples...)
	}
	return k.err
}

// Drop implements otlp.Keeper.
func (k *memoryAppender) Drop(n int64, _ string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dropped += n
}

// serve serves into k until the end of the test, and returns where.
func serve(t *testing.T, k *memoryAppender) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := otlp.Serve(l, "key", k, zap.NewNop())
	t.Cleanup(s.Close)
	return "http://" + l.Addr().String() + otlp.Path("key")
}

// answer is the answer to a request.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// send sends a request and returns its answer.
func send(t *testing.T, method, url, kind, encoding string, body []byte) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	respBody, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, respBody}
}

func zipped(t *testing.T, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(body)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const (
	asProtobuf = "application/x-protobuf"
	asJSON     = "application/json"
)

func TestARequestIsTakenInEveryForm(t *testing.T) {
	data := message(nil, gauge("g", "B", double(2.5, label("x", "1"))))
	binary, err := proto.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	plain := []byte(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"g","unit":"B","unknown":[1],"gauge":{"dataPoints":[
		{"timeUnixNano":"1000000000","asDouble":2.5,"attributes":[{"key":"x","value":{"stringValue":"1"}}],"exemplars":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174"}]}]}}]}]}]}`)
	for name, r := range map[string]struct {
		kind, encoding string
		body           []byte
	}{
		"protobuf":             {asProtobuf, "", binary},
		"protobuf with gzip":   {asProtobuf, "gzip", zipped(t, binary)},
		"JSON":                 {asJSON, "", text},
		"JSON with gzip":       {asJSON + "; charset=utf-8", "gzip", zipped(t, text)},
		"JSON of another hand": {asJSON, "identity", plain},
	} {
		t.Run(name, func(t *testing.T) {
			k := &memoryAppender{}
			got := send(t, http.MethodPost, serve(t, k), r.kind, r.encoding, r.body)
			var said collectorv1.ExportMetricsServiceResponse
			var err error
			if strings.HasPrefix(r.kind, asJSON) {
				err = protojson.Unmarshal(got.body, &said)
			} else {
				err = proto.Unmarshal(got.body, &said)
			}
			if got.code != http.StatusOK || err != nil || said.GetPartialSuccess() != nil || !strings.HasPrefix(r.kind, got.header.Get("Content-Type")) {
				t.Errorf("%d %q %v", got.code, got.body, err)
			}
			if diff := cmp.Diff([]string{"g{x=1} 2.5 B"}, show(k.samples)); diff != "" || k.samples[0].Time != 1e9 {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsRefusedIsAnsweredAsTheProtocolSays(t *testing.T) {
	bomb := zipped(t, bytes.Repeat([]byte{0}, 5<<20))
	many := bytes.Repeat([]byte{0x0a, 0}, 150_000) // that many resources, in few bytes
	tests := map[string]struct {
		method, path, kind, encoding string
		body                         []byte
		code                         int
		rpc                          int32 // code of the status; 0 for none
	}{
		"another method":            {http.MethodGet, "", asProtobuf, "", nil, http.StatusMethodNotAllowed, 0},
		"another signal":            {http.MethodPost, "/../traces", asProtobuf, "", nil, http.StatusNotFound, 0},
		"another type":              {http.MethodPost, "", "text/plain", "", nil, http.StatusUnsupportedMediaType, 0},
		"no type":                   {http.MethodPost, "", "", "", nil, http.StatusUnsupportedMediaType, 0},
		"another encoding":          {http.MethodPost, "", asProtobuf, "br", nil, http.StatusUnsupportedMediaType, 3},
		"what is no protobuf":       {http.MethodPost, "", asProtobuf, "", []byte("nonsense"), http.StatusBadRequest, 3},
		"what is no JSON":           {http.MethodPost, "", asJSON, "", []byte("{"), http.StatusBadRequest, 3},
		"what is no gzip":           {http.MethodPost, "", asProtobuf, "gzip", []byte("nonsense"), http.StatusBadRequest, 3},
		"gzip that is cut short":    {http.MethodPost, "", asProtobuf, "gzip", bomb[:50], http.StatusBadRequest, 3},
		"what is too large":         {http.MethodPost, "", asProtobuf, "", make([]byte, 5<<20), http.StatusRequestEntityTooLarge, 8},
		"what is too large in gzip": {http.MethodPost, "", asJSON, "gzip", bomb, http.StatusRequestEntityTooLarge, 8},
		"too much in few bytes":     {http.MethodPost, "", asProtobuf, "", many, http.StatusBadRequest, 3},
		"too much in few of JSON":   {http.MethodPost, "", asJSON, "", []byte(`{"resourceMetrics":[` + strings.Repeat("{},", 150_000) + `{}]}`), http.StatusBadRequest, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			k := &memoryAppender{}
			got := send(t, tt.method, serve(t, k)+tt.path, tt.kind, tt.encoding, tt.body)
			var said status.Status
			var err error
			switch {
			case tt.rpc == 0:
			case tt.kind == asJSON:
				err = json.Unmarshal(got.body, &said)
			default:
				err = proto.Unmarshal(got.body, &said)
			}
			if got.code != tt.code || err != nil || said.GetCode() != tt.rpc || tt.rpc > 0 && said.GetMessage() == "" {
				t.Errorf("%d %q %v, want %d and code %d", got.code, got.body, err, tt.code, tt.rpc)
			}
			if len(k.samples) > 0 || tt.rpc > 0 && k.dropped != 1 {
				t.Errorf("%d samples, %d dropped", len(k.samples), k.dropped)
			}
		})
	}
}

func TestWhatCannotBeKeptNowIsToBeSentAgain(t *testing.T) {
	body, err := proto.Marshal(message(nil, gauge("g", "", whole(1))))
	if err != nil {
		t.Fatal(err)
	}
	k := &memoryAppender{err: errors.New("no space left on device")}
	got := send(t, http.MethodPost, serve(t, k), asProtobuf, "", body)
	if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || k.dropped != 0 {
		t.Errorf("%d, %d dropped", got.code, k.dropped)
	}
}

func TestPointsThatAreRefusedAreSaid(t *testing.T) {
	body, err := proto.Marshal(message(nil, gauge("g", "", whole(1), &metricsv1.NumberDataPoint{})))
	if err != nil {
		t.Fatal(err)
	}
	k := &memoryAppender{}
	got := send(t, http.MethodPost, serve(t, k), asProtobuf, "", body)
	var said collectorv1.ExportMetricsServiceResponse
	if err := proto.Unmarshal(got.body, &said); err != nil || said.GetPartialSuccess().GetRejectedDataPoints() != 1 || said.GetPartialSuccess().GetErrorMessage() == "" {
		t.Errorf("%q: %v, %v", got.body, err, &said)
	}
	if len(k.samples) != 1 || k.dropped != 1 {
		t.Errorf("%d samples, %d dropped", len(k.samples), k.dropped)
	}
}

func TestARequestOfTooManySamplesIsRefusedAndTheyAreCounted(t *testing.T) {
	histograms := func(points int) *metricsv1.MetricsData {
		p := &metricsv1.HistogramDataPoint{Count: 1, ExplicitBounds: make([]float64, 29_995), BucketCounts: make([]uint64, 29_996)}
		all := histogram(p)
		all.GetHistogram().DataPoints = slices.Repeat(all.GetHistogram().GetDataPoints(), points)
		return message(nil, all)
	}
	for name, tt := range map[string]struct {
		data    *metricsv1.MetricsData
		code    int
		dropped int64
	}{
		"as many as there may be":  {histograms(2), http.StatusOK, 0},
		"too many buckets":         {histograms(3), http.StatusBadRequest, 90_000},
		"too many, of two metrics": {message(nil, histograms(2).GetResourceMetrics()[0].GetScopeMetrics()[0].GetMetrics()[0], gauge("g", "", whole(1))), http.StatusBadRequest, 60_001},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := proto.Marshal(tt.data)
			if err != nil {
				t.Fatal(err)
			}
			k := &memoryAppender{}
			got := send(t, http.MethodPost, serve(t, k), asProtobuf, "", body)
			if got.code != tt.code || k.dropped != tt.dropped || (len(k.samples) > 0) != (tt.code == http.StatusOK) {
				t.Errorf("%d %q, %d dropped, %d samples; want %d and %d dropped", got.code, got.body, k.dropped, len(k.samples), tt.code, tt.dropped)
			}
		})
	}
}

func FuzzSamples(f *testing.F) {
	body, err := proto.Marshal(message([]*commonv1.KeyValue{label("service.name", "a")}, gauge("g", "", double(1, label("x", "1"))), histogram(&metricsv1.HistogramDataPoint{BucketCounts: []uint64{1}})))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Fuzz(func(t *testing.T, body []byte) {
		data := &metricsv1.MetricsData{}
		if proto.Unmarshal(body, data) != nil {
			return
		}
		samples, refused := otlp.Samples(data)
		for _, s := range samples {
			if s.Name == "" || len(s.Labels) > 32 || s.Value == nil && s.Special == "" {
				t.Errorf("%+v, %d refused", s, refused)
			}
			read, err := extract.Emitted(extract.AppendLine(nil, &s))
			if err != nil || len(read) != 1 || read[0].Name != strings.ToValidUTF8(s.Name, "\uFFFD") {
				t.Errorf("%+v is written, and %+v is read: %v", s, read, err)
			}
		}
	})
}

func TestWhatIsSentToAnotherCollectorIsRefused(t *testing.T) {
	body, err := proto.Marshal(message(nil, gauge("g", "B", double(2.5))))
	if err != nil {
		t.Fatal(err)
	}
	k := &memoryAppender{}
	here := strings.TrimSuffix(serve(t, k), otlp.Path("key"))
	for path, want := range map[string]int{
		otlp.Path("key"): http.StatusOK, "/v1/metrics": http.StatusOK,
		otlp.Path("other"): http.StatusNotFound, "/key/v1/traces": http.StatusNotFound,
	} {
		if got := send(t, http.MethodPost, here+path, asProtobuf, "", body); got.code != want {
			t.Errorf("%s: %d, want %d", path, got.code, want)
		}
	}
	if len(k.samples) != 2 {
		t.Errorf("%d samples are kept, want 2", len(k.samples))
	}
}
