package otlp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	metricsv1 "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// Labels that are not attributes of the benchmark's own.
const (
	LabelService     = "service.name" // of the resource, if the benchmark names it
	LabelTemporality = "temporality"  // "delta" for counts since the last point; absent for counts since the start
	LabelLE          = "le"           // of a bucket: its upper bound
	LabelQuantile    = "quantile"     // of a summary's value
)

// samplesOf returns the samples of a message in its order, and how many of its data points are refused.
//
//   - A data point of a gauge or a sum is one sample with the metric's name.
//   - A data point of a histogram is NAME.count, NAME.sum, NAME.min and NAME.max as
//     far as the point has them, and NAME.bucket for each bound: the number of values
//     that are not above the bound, which is the label le.
//   - A data point of an exponential histogram is the same without buckets.
//   - A data point of a summary is NAME.count, NAME.sum, and NAME with the label quantile.
//
// The attributes of a point are its labels; of the resource only service.name is. Counts since the last point, not since the start, have
// the label temporality=delta, and are not added up. Points with the flag "no recorded value" are left out. Samples of points without a
// time have no time.
func samplesOf(data *metricsv1.MetricsData) (samples []event.Sample, refused int64) {
	r := conversion{}
	for _, of := range data.GetResourceMetrics() {
		r.service = service(of.GetResource().GetAttributes())
		for _, scope := range of.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				r.metric(m)
			}
		}
	}
	return r.samples, r.refused
}

// maxSamples is how many samples a request may hold: a bucket takes a few bytes of a request, and as a sample with labels much memory.
const maxSamples = 60_000

// tooManySamplesError means that a request holds more than maxSamples samples.
type tooManySamplesError struct{ count int }

// Error implements error.
func (e *tooManySamplesError) Error() string {
	return fmt.Sprintf("it holds %d samples, more than %d (send fewer points at once)", e.count, maxSamples)
}

// checkSamples returns a *tooManySamplesError if samplesOf would return too many, some of which it may refuse.
func checkSamples(data *metricsv1.MetricsData) error {
	n := 0
	for _, of := range data.GetResourceMetrics() {
		for _, scope := range of.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				n += countSamples(m)
			}
		}
	}
	if n > maxSamples {
		return &tooManySamplesError{n}
	}
	return nil
}

// countSamples returns how many samples the points of a metric are, at most.
func countSamples(m *metricsv1.Metric) (n int) {
	const ofDistribution, ofSummary = 4, 2 // count, sum, min and max; count and sum
	switch data := m.GetData().(type) {
	case *metricsv1.Metric_Gauge:
		return len(data.Gauge.GetDataPoints())
	case *metricsv1.Metric_Sum:
		return len(data.Sum.GetDataPoints())
	case *metricsv1.Metric_Histogram:
		for _, p := range data.Histogram.GetDataPoints() {
			n += ofDistribution + len(p.GetBucketCounts())
		}
	case *metricsv1.Metric_ExponentialHistogram:
		return ofDistribution * len(data.ExponentialHistogram.GetDataPoints())
	case *metricsv1.Metric_Summary:
		for _, p := range data.Summary.GetDataPoints() {
			n += ofSummary + len(p.GetQuantileValues())
		}
	}
	return n
}

// service returns the name that the benchmark gives itself, empty if it gives none.
func service(attributes []*commonv1.KeyValue) string {
	for _, a := range attributes {
		if name := a.GetValue().GetStringValue(); a.GetKey() == LabelService && !strings.HasPrefix(name, "unknown_service") {
			return name
		}
	}
	return ""
}

type conversion struct {
	service string
	samples []event.Sample
	refused int64
}

// point has the methods that all kinds of data points share.
type point interface {
	GetAttributes() []*commonv1.KeyValue
	GetTimeUnixNano() uint64
	GetFlags() uint32
}

func (r *conversion) metric(m *metricsv1.Metric) {
	switch data := m.GetData().(type) {
	case *metricsv1.Metric_Gauge:
		for _, p := range data.Gauge.GetDataPoints() {
			r.number(m, p, false)
		}
	case *metricsv1.Metric_Sum:
		for _, p := range data.Sum.GetDataPoints() {
			r.number(m, p, isDelta(data.Sum.GetAggregationTemporality()))
		}
	case *metricsv1.Metric_Histogram:
		for _, p := range data.Histogram.GetDataPoints() {
			r.histogram(m, p, isDelta(data.Histogram.GetAggregationTemporality()))
		}
	case *metricsv1.Metric_ExponentialHistogram:
		for _, p := range data.ExponentialHistogram.GetDataPoints() {
			if s, ok := r.newSample(m, p, isDelta(data.ExponentialHistogram.GetAggregationTemporality())); ok {
				r.distribution(s, p.GetCount(), p.Sum, p.Min, p.Max)
			}
		}
	case *metricsv1.Metric_Summary:
		for _, p := range data.Summary.GetDataPoints() {
			r.summary(m, p)
		}
	}
}

func isDelta(t metricsv1.AggregationTemporality) bool {
	return t == metricsv1.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
}

// newSample returns a sample with the fields that all samples of a point share. It is false for a point without a recorded value, and for a
// point that is refused.
func (r *conversion) newSample(m *metricsv1.Metric, p point, delta bool) (event.Sample, bool) {
	if p.GetFlags()&uint32(metricsv1.DataPointFlags_DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK) != 0 {
		return event.Sample{}, false
	}
	s := event.Sample{Name: m.GetName(), Unit: m.GetUnit()}
	at := p.GetTimeUnixNano()
	if s.Name == "" || s.Name[0] == '@' || len(s.Name) > maxName || at > maxTime || !extract.Fits(s.Unit) ||
		len(p.GetAttributes()) > extract.MaxLabels-3 {
		r.refused++
		return s, false
	}
	s.Time = int64(at)
	if n := len(p.GetAttributes()); n > 0 || r.service != "" || delta {
		s.Labels = make(map[string]string, n+2)
	}
	for _, a := range p.GetAttributes() {
		if a.GetKey() != "" {
			s.Labels[a.GetKey()] = text(a.GetValue())
		}
	}
	if r.service != "" {
		s.Labels[LabelService] = r.service
	}
	if delta {
		s.Labels[LabelTemporality] = "delta"
	}
	for name, value := range s.Labels {
		if !extract.Fits(name) || !extract.Fits(value) {
			r.refused++ // dropping the label would put the sample into another series
			return s, false
		}
	}
	return s, true
}

// Bounds of a point.
const (
	maxName = 240 // bytes of a metric's name: some samples get a suffix
	maxTime = 7e18
)

func (r *conversion) number(m *metricsv1.Metric, p *metricsv1.NumberDataPoint, delta bool) {
	s, ok := r.newSample(m, p, delta)
	if !ok {
		return
	}
	switch v := p.GetValue().(type) {
	case *metricsv1.NumberDataPoint_AsDouble:
		r.add(s, "", "", v.AsDouble, "", "")
	case *metricsv1.NumberDataPoint_AsInt:
		r.add(s, "", "", float64(v.AsInt), "", "")
	default:
		r.refused++
	}
}

func (r *conversion) histogram(m *metricsv1.Metric, p *metricsv1.HistogramDataPoint, delta bool) {
	bounds, counts := p.GetExplicitBounds(), p.GetBucketCounts()
	if len(counts) > 0 && len(counts) != len(bounds)+1 {
		r.refused++
		return
	}
	s, ok := r.newSample(m, p, delta)
	if !ok {
		return
	}
	r.distribution(s, p.GetCount(), p.Sum, p.Min, p.Max)
	var below uint64
	for i, n := range counts {
		bound := math.Inf(1)
		if i < len(bounds) {
			bound = bounds[i]
		}
		below += n
		r.add(s, ".bucket", "1", float64(below), LabelLE, strconv.FormatFloat(bound, 'g', -1, 64))
	}
}

// distribution adds the count, sum, minimum and maximum of a histogram.
func (r *conversion) distribution(s event.Sample, count uint64, sum, least, most *float64) {
	r.add(s, ".count", "1", float64(count), "", "")
	for _, of := range []struct {
		name  string
		value *float64
	}{{".sum", sum}, {".min", least}, {".max", most}} {
		if of.value != nil {
			r.add(s, of.name, "", *of.value, "", "")
		}
	}
}

func (r *conversion) summary(m *metricsv1.Metric, p *metricsv1.SummaryDataPoint) {
	s, ok := r.newSample(m, p, false)
	if !ok {
		return
	}
	r.add(s, ".count", "1", float64(p.GetCount()), "", "")
	r.add(s, ".sum", "", p.GetSum(), "", "")
	for _, q := range p.GetQuantileValues() {
		r.add(s, "", "", q.GetValue(), LabelQuantile, strconv.FormatFloat(q.GetQuantile(), 'g', -1, 64))
	}
}

// add adds a sample like s, with a suffix to its name, a unit of its own and one more label, as far as they are not empty.
func (r *conversion) add(s event.Sample, suffix, unit string, v float64, key, value string) {
	s.Name += suffix
	if unit != "" {
		s.Unit = unit
	}
	if key != "" {
		labels := make(map[string]string, len(s.Labels)+1)
		maps.Copy(labels, s.Labels)
		labels[key], s.Labels = value, labels
	}
	if len(s.Labels) == 0 {
		s.Labels = nil
	}
	s.Set(v)
	r.samples = append(r.samples, s)
}

// text returns the value of an attribute as a label.
func text(of *commonv1.AnyValue) string {
	switch v := of.GetValue().(type) {
	case nil:
		return ""
	case *commonv1.AnyValue_StringValue:
		return v.StringValue
	case *commonv1.AnyValue_BoolValue:
		return strconv.FormatBool(v.BoolValue)
	case *commonv1.AnyValue_IntValue:
		return strconv.FormatInt(v.IntValue, 10)
	case *commonv1.AnyValue_DoubleValue:
		return strconv.FormatFloat(v.DoubleValue, 'g', -1, 64)
	case *commonv1.AnyValue_BytesValue:
		return base64.StdEncoding.EncodeToString(v.BytesValue)
	case *commonv1.AnyValue_ArrayValue, *commonv1.AnyValue_KvlistValue:
		b, err := json.Marshal(jsonValue(of, 0))
		if err != nil {
			return fmt.Sprint(err)
		}
		return string(b)
	}
	return ""
}

// jsonValue returns an attribute's value in a form that encodes to JSON.
func jsonValue(of *commonv1.AnyValue, depth int) any {
	const deepest = 8
	switch v := of.GetValue().(type) {
	case *commonv1.AnyValue_ArrayValue:
		var all []any
		for _, item := range v.ArrayValue.GetValues() {
			if depth < deepest {
				all = append(all, jsonValue(item, depth+1))
			}
		}
		return all
	case *commonv1.AnyValue_KvlistValue:
		all := make(map[string]any)
		for _, item := range v.KvlistValue.GetValues() {
			if depth < deepest {
				all[item.GetKey()] = jsonValue(item.GetValue(), depth+1)
			}
		}
		return all
	}
	return text(of)
}
