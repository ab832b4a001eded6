package set

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// batchRuns is the number of runs whose summaries are read together.
const batchRuns = 100

// The metrics that each run with a start and an end has.
const (
	durationMetric = "run.duration" // from the start of the benchmark's process to the end
	queuedMetric   = "run.queued"   // from the submission to that start
	timeUnit       = "s"
)

// Sizes of results, as estimates of the bytes of their messages.
const (
	maxCellSize = 2 << 20
	maxPageSize = 1 << 20 // once it is reached, a page ends
	seriesSize  = 100     // beside its texts
	valueSize   = 16
)

// MetricResult is the result of one metric, with one unit and one set of labels, in one
// cell.
type MetricResult struct {
	Metric    string
	Unit      string
	Labels    map[string]string
	Direction judge.Direction // empty if the descriptor does not say

	judge.Summary

	Values []RepetitionValue // in the order of the repetitions, with those that do not count
}

// RepetitionValue is the value of a metric in one repetition.
type RepetitionValue struct {
	Repetition int
	Value      float64
}

// counts reports whether a run is a repetition that succeeded. No other run of a cell has
// values: a warm-up was run before the cell was in its normal state, and a run that did
// not succeed may have measured something else.
func counts(r store.Run) bool { return !r.Warmup && r.Outcome == event.Succeeded }

// cellValues gathers the values of one cell: for each metric, unit and set of labels one
// value of each repetition, however many samples the repetition emitted.
type cellValues struct {
	metrics []string // names of the metrics to gather; empty means all

	succeeded    int // repetitions
	unsummarised int // of these, those without a summary
	incomplete   int // of these, those whose summary lacks samples
	series       map[seriesKey]*MetricResult
	size         int // estimate of the bytes of their message
}

// add adds a repetition that counts, with its summary, nil if it has none.
func (c *cellValues) add(r store.Run, all *store.Summaries) {
	c.succeeded++
	var hasDuration, hasQueued bool
	switch {
	case all == nil:
		c.unsummarised++
		all = new(store.Summaries)
	case !all.Complete:
		c.incomplete++
	}
	for i := range all.Summaries {
		s := &all.Summaries[i]
		isTime := s.Unit == timeUnit && len(s.Labels) == 0
		hasDuration = hasDuration || isTime && s.Metric == durationMetric
		hasQueued = hasQueued || isTime && s.Metric == queuedMetric
		c.addValue(s, r.Repetition)
	}
	if r.Started == nil || r.Ended == nil {
		return
	}
	if !hasDuration {
		c.addTime(durationMetric, r.Ended.Sub(*r.Started), r.Repetition)
	}
	if !hasQueued && !r.Created.IsZero() { // an import may not have the time
		c.addTime(queuedMetric, r.Started.Sub(r.Created), r.Repetition)
	}
}

// addTime adds a time of a repetition, unless clocks that differ make it negative.
func (c *cellValues) addTime(metric string, d time.Duration, repetition int) {
	if d >= 0 {
		c.addValue(&store.Summary{Metric: metric, Unit: timeUnit, Median: store.Float(d.Seconds())}, repetition)
	}
}

// addValue adds the value of a repetition.
func (c *cellValues) addValue(s *store.Summary, repetition int) {
	if len(c.metrics) > 0 && !slices.Contains(c.metrics, s.Metric) {
		return
	}
	key := keyOf(s)
	m, ok := c.series[key]
	if !ok {
		if c.series == nil {
			c.series = make(map[seriesKey]*MetricResult)
		}
		m = &MetricResult{Metric: s.Metric, Unit: s.Unit, Labels: s.Labels}
		c.series[key] = m
		c.size += seriesSize + len(key.metric) + len(key.unit) + len(key.labels)
	}
	if m.Direction == "" {
		m.Direction = judge.Direction(s.Direction)
	}
	m.Values = append(m.Values, RepetitionValue{Repetition: repetition, Value: float64(s.Median)})
	c.size += valueSize
}

// seriesKey is a metric, a unit and a set of labels.
type seriesKey struct{ metric, unit, labels string }

func keyOf(s *store.Summary) seriesKey {
	key := seriesKey{metric: s.Metric, unit: s.Unit}
	if len(s.Labels) > 0 {
		labels, _ := json.Marshal(s.Labels) // sorted; texts have no errors
		key.labels = string(labels)
	}
	return key
}

func (k seriesKey) compare(other seriesKey) int {
	return cmp.Or(cmp.Compare(k.metric, other.metric), cmp.Compare(k.unit, other.unit), cmp.Compare(k.labels, other.labels))
}

// results returns the results by metric, unit and labels. They do not depend on the order in
// which the repetitions were added.
func (c *cellValues) results(j judge.Judge) []MetricResult {
	keys := make([]seriesKey, 0, len(c.series))
	for key := range c.series {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, seriesKey.compare)
	all := make([]MetricResult, 0, len(keys))
	var values []float64
	for _, key := range keys {
		m := *c.series[key]
		slices.SortStableFunc(m.Values, func(a, b RepetitionValue) int {
			return cmp.Or(cmp.Compare(a.Repetition, b.Repetition), cmp.Compare(a.Value, b.Value))
		})
		values = values[:0]
		for _, v := range m.Values {
			values = append(values, v.Value)
		}
		m.Summary = j.Summarise(values)
		all = append(all, m)
	}
	return all
}

// cellsFor returns the number of cells, at most n, whose runs are at most a number of runs.
// It is at least one.
func cellsFor(s Set, n, runs int) int {
	return min(n, max(1, runs/max(1, s.Repetitions+s.Warmup)))
}
