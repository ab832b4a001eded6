package results

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/gateway/series"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func newJudge(tb testing.TB) judge.Judge {
	tb.Helper()
	j, err := judge.New(judge.Settings{})
	if err != nil {
		tb.Fatal(err)
	}
	return j
}

// summarised returns the summaries of a run with these medians of metric m.
func summarised(medians ...float64) *store.Summaries {
	all := &store.Summaries{Complete: true}
	for _, v := range medians {
		all.Summaries = append(all.Summaries, store.Summary{Metric: "m", Unit: "ms", N: 1000, Median: store.Float(v)})
	}
	return all
}

// describeResult describes the result of a metric on one line.
func describeResult(m MetricResult) string {
	text := m.Metric
	if len(m.Labels) > 0 {
		text += fmt.Sprint(m.Labels)
	}
	text += fmt.Sprintf(" %s: %g", m.Unit, m.Median)
	if m.Interval != nil {
		text += fmt.Sprintf(" [%g, %g]", m.Interval.Low, m.Interval.High)
	}
	text += fmt.Sprintf(" n=%d", m.N)
	if m.Lacking > 0 {
		text += fmt.Sprintf(" lacking %d", m.Lacking)
	}
	if m.Excluded > 0 {
		text += fmt.Sprintf(" excluded %d", m.Excluded)
	}
	if m.Direction != "" {
		text += " " + string(m.Direction)
	}
	text += " values="
	for i, v := range m.Values {
		if i > 0 {
			text += " "
		}
		text += fmt.Sprint(v.Value)
	}
	return text
}

func TestResultsOfACell(t *testing.T) {
	for name, tt := range map[string]struct {
		medians []float64
		want    string
	}{
		"the median is that of the repetitions' medians": {[]float64{1, 2, 9}, "m ms: 2 n=3 lacking 3 values=1 2 9"},
		"6 repetitions have an interval":                 {[]float64{5, 1, 2, 4, 3, 6}, "m ms: 3.5 [1, 6] n=6 values=5 1 2 4 3 6"},
		"values that are not numbers are excluded":       {[]float64{math.NaN(), math.Inf(1), 7}, "m ms: 7 n=1 lacking 5 excluded 2 values=NaN +Inf 7"},
	} {
		t.Run(name, func(t *testing.T) {
			var of series.Builder
			for i, v := range tt.medians {
				of.Add(i+1, store.Run{}, summarised(v))
			}
			got := describeResult(resultsOf(of.Series(), newJudge(t))[0])
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCellsOfAPageOfResults(t *testing.T) {
	for name, tt := range map[string]struct {
		set  SetState
		n    int
		want int
	}{
		"a page has as many cells as were asked for":               {SetState{Repetitions: 1}, 50, 50},
		"a page has the cells of 1,000 runs, warm-ups included":    {SetState{Repetitions: 9, Warmup: 1}, 500, 100},
		"a page has one cell, even if that has more than the runs": {SetState{Repetitions: 10_000}, 50, 1},
	} {
		if got := tt.set.cellsFor(tt.n, MaxPageRuns); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}

// BenchmarkResults computes the results of 10,000 cells with 10 metrics and 6 repetitions.
// The bar is 300 ms.
func BenchmarkResults(b *testing.B) {
	repetitions := make([]*store.Summaries, 6)
	for i := range repetitions {
		repetitions[i] = &store.Summaries{Complete: true}
		for m := range 10 {
			repetitions[i].Summaries = append(repetitions[i].Summaries, store.Summary{
				Metric: fmt.Sprintf("metric-%d", m), Unit: "ms", Median: store.Float(m*7 + i*i%11), Direction: event.Lower,
			})
		}
	}
	j := newJudge(b)
	for b.Loop() {
		for range 10_000 {
			var of series.Builder
			for i, all := range repetitions {
				of.Add(i+1, store.Run{}, all)
			}
			if got := resultsOf(of.Series(), j); len(got) != 10 || got[0].Interval == nil {
				b.Fatal(got)
			}
		}
	}
}
