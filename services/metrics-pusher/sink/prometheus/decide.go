package prometheus

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink"
)

// label is one of a series.
type label struct{ name, value string }

// point is a value of a series.
type point struct {
	ms    int64
	value float64
}

// timeSeries is a series of points with the same labels.
type timeSeries struct {
	labels []label // sorted by name
	points []point // ascending in time
}

// toTimeSeries returns the series of batches, each with its points in the order of time, and the number of samples that are left out: of
// several samples of one series in one millisecond, only the last is included.
func toTimeSeries(batches []event.Metrics, more map[string]string) (all []*timeSeries, merged int) {
	byLabels := make(map[string]*timeSeries)
	for i := range batches {
		b := &batches[i]
		for j := range b.Samples {
			v := &b.Samples[j]
			labels := labelsOf(b, v, more)
			key := string(appendLabels(nil, labels))
			s := byLabels[key]
			if s == nil {
				s = &timeSeries{labels: labels}
				byLabels[key], all = s, append(all, s)
			}
			s.points = append(s.points, point{floorMS(v.Time), v.Float()})
		}
	}
	for _, s := range all {
		n := len(s.points)
		s.sortPoints()
		merged += n - len(s.points)
	}
	return all, merged
}

// floorMS returns the millisecond of a time in ns.
func floorMS(ns int64) int64 {
	ms := ns / 1e6
	if ns%1e6 < 0 {
		ms--
	}
	return ms
}

// sortPoints sorts points by time. Of several points of one time only the last one stays.
func (s *timeSeries) sortPoints() {
	slices.SortStableFunc(s.points, func(a, b point) int { return cmp.Compare(a.ms, b.ms) })
	kept := s.points[:0]
	for i, p := range s.points {
		if i+1 == len(s.points) || s.points[i+1].ms != p.ms {
			kept = append(kept, p)
		}
	}
	s.points = kept
}

// labelsOf returns the labels of a sample's series, by name: those of its source, the operator's, and the sample's own if no other label
// has the name.
func labelsOf(b *event.Metrics, v *event.Sample, more map[string]string) []label {
	name := "bai_" + sink.SanitizeName(v.Name, func(r rune) bool { return sink.Word(r) || r == ':' })
	all := map[string]string{
		"__name__": name, "run": b.Run, "namespace": b.Namespace, "attempt": strconv.Itoa(b.Attempt),
		"role": b.Stream.Role, "index": strconv.Itoa(b.Stream.Index), "container": b.Stream.Container,
		"stream": b.Stream.Kind, "unit": v.Unit,
	}
	if name != "bai_"+v.Name {
		all["metric"] = v.Name
	}
	maps.Copy(all, more)
	for _, key := range slices.Sorted(maps.Keys(v.Labels)) {
		all[uniqueName(all, sink.SanitizeName(key, sink.Word))] = v.Labels[key]
	}
	labels := make([]label, 0, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if all[key] != "" { // a label without a value is no label
			labels = append(labels, label{key, strings.ToValidUTF8(all[key], "\uFFFD")})
		}
	}
	return labels
}

// uniqueName returns a name for a label that no other label has, and that Prometheus does not reserve.
func uniqueName(taken map[string]string, name string) string {
	if _, ok := taken[name]; !ok && !strings.HasPrefix(name, "__") {
		return name
	}
	name = "label_" + strings.TrimLeft(name, "_")
	for {
		if _, ok := taken[name]; !ok {
			return name
		}
		name += "_"
	}
}

// Field numbers of a WriteRequest and its parts, in the protocol's first version (prometheus.WriteRequest).
const (
	fieldSeries  = 1 // of WriteRequest
	fieldLabels  = 1 // of TimeSeries
	fieldSamples = 2
	fieldName    = 1 // of Label
	fieldText    = 2
	fieldValue   = 1 // of Sample
	fieldMS      = 2
)

// request returns the WriteRequest of series.
func request(all []*timeSeries) []byte {
	var out, one, sample []byte
	for _, s := range all {
		one = appendLabels(one[:0], s.labels)
		for _, p := range s.points {
			sample = protowire.AppendTag(sample[:0], fieldValue, protowire.Fixed64Type)
			sample = binary.LittleEndian.AppendUint64(sample, math.Float64bits(p.value))
			sample = protowire.AppendTag(sample, fieldMS, protowire.VarintType)
			sample = protowire.AppendVarint(sample, uint64(p.ms)) //nolint:gosec // as protobuf has negative numbers
			one = protowire.AppendBytes(protowire.AppendTag(one, fieldSamples, protowire.BytesType), sample)
		}
		out = protowire.AppendBytes(protowire.AppendTag(out, fieldSeries, protowire.BytesType), one)
	}
	return out
}

func appendLabels(b []byte, labels []label) []byte {
	for _, l := range labels {
		one := protowire.AppendString(protowire.AppendTag(nil, fieldName, protowire.BytesType), l.name)
		one = protowire.AppendString(protowire.AppendTag(one, fieldText, protowire.BytesType), l.value)
		b = protowire.AppendBytes(protowire.AppendTag(b, fieldLabels, protowire.BytesType), one)
	}
	return b
}

// split splits series into two parts with about the same number of points; the points of one series stay in order, the earlier ones in the
// first part. There must be two points or more.
func split(all []*timeSeries) (first, second []*timeSeries) {
	total := 0
	for _, s := range all {
		total += len(s.points)
	}
	room := total / 2
	for _, s := range all {
		n := min(room, len(s.points))
		room -= n
		if n > 0 {
			first = append(first, &timeSeries{s.labels, s.points[:n]})
		}
		if n < len(s.points) {
			second = append(second, &timeSeries{s.labels, s.points[n:]})
		}
	}
	return first, second
}

func count(all []*timeSeries) (n int) {
	for _, s := range all {
		n += len(s.points)
	}
	return n
}
