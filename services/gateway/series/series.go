// Package series gathers the values of metrics over runs. A series is one metric, with
// one unit and one set of labels; a run has one value in it, the median of its samples,
// however many it emitted. It is pure.
package series

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

// systemPrefix begins the names of what the platform measures on machines.
const systemPrefix = "system."

// OfPlatform reports whether a metric is measured by the platform, for each run: it says how the
// benchmark ran, and no benchmark is about it.
func OfPlatform(metric string) bool {
	return descriptors.OfPlatform(metric)
}

// Estimates of the bytes of the message of a series.
const (
	seriesSize = 100 // beside its texts
	pointSize  = 16
)

// Series are the values of one metric, with one unit and one set of labels.
type Series struct {
	Metric    string
	Unit      string
	Labels    map[string]string
	Direction judge.Direction // empty if the descriptor does not say
	Points    []Point         // in the order of Index
}

// Values returns the values of the points.
func (s Series) Values() []float64 {
	values := make([]float64, len(s.Points))
	for i, p := range s.Points {
		values[i] = p.Value
	}
	return values
}

// Size returns an estimate of the bytes of the message of the series.
func (s Series) Size() int { return s.key().size() + pointSize*len(s.Points) }

// Point is the value of one run.
type Point struct {
	Index   int // of the run, as Add was given it
	Value   float64
	Samples int64 // of which Value is the median; 0 for the times of the run

	// Interval is that of the median of the samples; nil where they are too few.
	Interval *store.Interval
}

// Builder builds the series of runs. Its zero value gathers all metrics but system.*.
type Builder struct {
	Metrics []string // names of the metrics to gather; empty means all but system.*
	System  bool     // with the metrics system.*, if Metrics is empty

	Runs         int // that were added
	Unsummarised int // of these, those without a summary
	Incomplete   int // of these, those whose summary lacks samples that never came
	Size         int // estimate of the bytes of the message of all series

	series map[key]*Series
}

// Add adds a run that counts, with its summary, nil if it has none. The run's place among the
// points is index. Each run is added once.
func (b *Builder) Add(index int, r store.Run, all *store.Summaries) {
	switch {
	case all == nil:
		b.Unsummarised++
	case !all.Complete:
		b.Incomplete++
	}
	b.AddValues(index, points.Values(r, all))
}

// AddValues adds a run that counts, with its values in all series.
func (b *Builder) AddValues(index int, values []store.Summary) {
	b.Runs++
	for i := range values {
		b.addValue(&values[i], index)
	}
}

// addValue adds the value of a run.
func (b *Builder) addValue(s *store.Summary, index int) {
	if !b.wants(s.Metric) {
		return
	}
	k := keyOf(s)
	one, ok := b.series[k]
	if !ok {
		if b.series == nil {
			b.series = make(map[key]*Series)
		}
		one = &Series{Metric: s.Metric, Unit: s.Unit, Labels: s.Labels}
		b.series[k] = one
		b.Size += k.size()
	}
	if one.Direction == "" {
		one.Direction = judge.Direction(s.Direction)
	}
	one.Points = append(one.Points, Point{Index: index, Value: float64(s.Median), Samples: s.N, Interval: s.Interval})
	b.Size += pointSize
}

func (b *Builder) wants(metric string) bool {
	if len(b.Metrics) > 0 {
		return slices.Contains(b.Metrics, metric)
	}
	return b.System || !strings.HasPrefix(metric, systemPrefix)
}

// Series returns the series by metric, unit and labels. They do not depend on the order in
// which the runs were added. The next Add does not change them.
func (b *Builder) Series() []Series {
	keys := make([]key, 0, len(b.series))
	for k := range b.series {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, key.compare)
	all := make([]Series, 0, len(keys))
	for _, k := range keys {
		one := *b.series[k]
		one.Points = slices.SortedStableFunc(slices.Values(one.Points), func(a, b Point) int {
			return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Value, b.Value))
		})
		all = append(all, one)
	}
	return all
}

// key identifies a series.
type key struct{ metric, unit, labels string }

func (s Series) key() key {
	return keyOf(&store.Summary{Metric: s.Metric, Unit: s.Unit, Labels: s.Labels})
}

func keyOf(s *store.Summary) key {
	k := key{metric: s.Metric, unit: s.Unit}
	if len(s.Labels) > 0 {
		labels, _ := json.Marshal(s.Labels) // sorted; texts have no errors
		k.labels = string(labels)
	}
	return k
}

func (k key) size() int { return seriesSize + len(k.metric) + len(k.unit) + len(k.labels) }

func (k key) compare(other key) int {
	return cmp.Or(cmp.Compare(k.metric, other.metric), cmp.Compare(k.unit, other.unit), cmp.Compare(k.labels, other.labels))
}
