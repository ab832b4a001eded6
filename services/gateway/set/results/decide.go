package results

import (
	"slices"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/gateway/series"
)

// batchRuns is the number of runs whose summaries are read together.
const batchRuns = 100

// Sizes of results, as estimates of the bytes of their messages.
const (
	maxCellSize = 2 << 20
	maxPageSize = 1 << 20 // once it is reached, a page ends
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

// resultsOf returns the results of the series of a cell, in their order.
func resultsOf(all []series.Series, j judge.Judge) []MetricResult {
	results := make([]MetricResult, 0, len(all))
	for _, one := range all {
		m := MetricResult{
			Metric: one.Metric, Unit: one.Unit, Labels: one.Labels, Direction: one.Direction,
			Summary: j.Summarise(one.Values()),
		}
		for _, p := range one.Points {
			m.Values = append(m.Values, RepetitionValue{Repetition: p.Index, Value: p.Value})
		}
		results = append(results, m)
	}
	return results
}

// selectMetrics returns the series of the metrics with some names; without names, all.
func selectMetrics(all []series.Series, names []string) []series.Series {
	if len(names) == 0 {
		return all
	}
	var some []series.Series
	for _, one := range all {
		if slices.Contains(names, one.Metric) {
			some = append(some, one)
		}
	}
	return some
}

// cellsFor returns the number of cells, at most n, whose runs are at most a number of runs.
// It is at least one.
func (s SetState) cellsFor(n, runs int) int {
	return min(n, max(1, runs/max(1, s.Repetitions+s.Warmup)))
}
