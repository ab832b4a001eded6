package set

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/judge"
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
	return text
}

// describeResults describes the results of a cell on one line.
func describeResults(t *testing.T, c *cellValues) string {
	t.Helper()
	all := c.results(newJudge(t))
	lines := make([]string, 0, len(all))
	for _, m := range all {
		lines = append(lines, describeResult(m))
	}
	text := strings.Join(lines, ", ")
	if c.unsummarised > 0 {
		text += fmt.Sprintf("; %d unsummarised", c.unsummarised)
	}
	if c.incomplete > 0 {
		text += fmt.Sprintf("; %d incomplete", c.incomplete)
	}
	return text
}

func TestResultsOfACell(t *testing.T) {
	type added struct {
		run store.Run
		all *store.Summaries
	}
	repetition := func(n int, all *store.Summaries) added {
		return added{run: store.Run{Lineage: event.Lineage{Repetition: n}}, all: all}
	}
	began := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	lasting := func(d time.Duration, all *store.Summaries) added {
		ended := began.Add(d)
		return added{run: store.Run{Lineage: event.Lineage{Repetition: 1}, Started: &began, Ended: &ended}, all: all}
	}
	queued := func(d time.Duration, all *store.Summaries) added {
		a := lasting(time.Second, all)
		a.run.Created = began.Add(-d)
		return a
	}
	one := func(s store.Summary) *store.Summaries {
		return &store.Summaries{Complete: true, Summaries: []store.Summary{s}}
	}
	for name, tt := range map[string]struct {
		metrics []string
		added   []added
		want    string
	}{
		"a repetition is one value, however many samples it emitted": {
			added: []added{repetition(1, summarised(3))}, want: "m ms: 3 n=1 lacking 5",
		},
		"the median is that of the repetitions' medians": {
			added: []added{repetition(1, summarised(1)), repetition(2, summarised(2)), repetition(3, summarised(9))},
			want:  "m ms: 2 n=3 lacking 3",
		},
		"6 repetitions have an interval": {
			added: []added{
				repetition(1, summarised(5)), repetition(2, summarised(1)), repetition(3, summarised(2)),
				repetition(4, summarised(4)), repetition(5, summarised(3)), repetition(6, summarised(6)),
			},
			want: "m ms: 3.5 [1, 6] n=6",
		},
		"values that are not numbers are excluded": {
			added: []added{repetition(1, summarised(math.NaN())), repetition(2, summarised(math.Inf(1))), repetition(3, summarised(7))},
			want:  "m ms: 7 n=1 lacking 5 excluded 2",
		},
		"units and labels are results of their own": {
			added: []added{
				repetition(1, summarised(1)),
				repetition(2, one(store.Summary{Metric: "m", Unit: "s", Median: 2})),
				repetition(3, one(store.Summary{Metric: "m", Unit: "ms", Labels: map[string]string{"b": "2", "a": "1"}, Median: 3})),
				repetition(4, one(store.Summary{Metric: "m", Unit: "ms", Labels: map[string]string{"a": "1", "b": "2"}, Median: 5})),
			},
			want: "m ms: 1 n=1 lacking 5, mmap[a:1 b:2] ms: 4 n=2 lacking 4, m s: 2 n=1 lacking 5",
		},
		"the direction is the one that a summary has": {
			added: []added{repetition(1, summarised(1)), repetition(2, one(store.Summary{Metric: "m", Unit: "ms", Median: 1, Direction: event.Lower}))},
			want:  "m ms: 1 n=2 lacking 4 lower",
		},
		"the duration of a run is a metric without a direction": {
			added: []added{lasting(1500*time.Millisecond, nil)}, want: "run.duration s: 1.5 n=1 lacking 5; 1 unsummarised",
		},
		"the time that a run was queued is a metric, too": {
			added: []added{queued(3*time.Second, nil)}, want: "run.duration s: 1 n=1 lacking 5, run.queued s: 3 n=1 lacking 5; 1 unsummarised",
		},
		"a run that started before it was submitted was not queued": {
			added: []added{queued(-time.Second, nil)}, want: "run.duration s: 1 n=1 lacking 5; 1 unsummarised",
		},
		"a metric of the benchmark with the name of the queued time takes its place": {
			added: []added{queued(time.Second, one(store.Summary{Metric: "run.queued", Unit: "s", Median: 42}))},
			want:  "run.duration s: 1 n=1 lacking 5, run.queued s: 42 n=1 lacking 5",
		},
		"a run that ended before its start has no duration": {
			added: []added{lasting(-time.Second, nil)}, want: "; 1 unsummarised",
		},
		"a metric of the benchmark with the name of the duration takes its place": {
			added: []added{lasting(time.Second, one(store.Summary{Metric: "run.duration", Unit: "s", Median: 42}))},
			want:  "run.duration s: 42 n=1 lacking 5",
		},
		"a metric of the benchmark in another unit is beside the duration": {
			added: []added{lasting(time.Second, one(store.Summary{Metric: "run.duration", Unit: "ms", Median: 42}))},
			want:  "run.duration ms: 42 n=1 lacking 5, run.duration s: 1 n=1 lacking 5",
		},
		"metrics that were not asked for are left out": {
			metrics: []string{"m"}, added: []added{lasting(time.Second, summarised(1))}, want: "m ms: 1 n=1 lacking 5",
		},
		"a repetition whose summary lacks samples counts, and is told apart": {
			added: []added{repetition(1, &store.Summaries{Summaries: summarised(1).Summaries})}, want: "m ms: 1 n=1 lacking 5; 1 incomplete",
		},
		"a cell without repetitions has no results": {},
	} {
		t.Run(name, func(t *testing.T) {
			c := cellValues{metrics: tt.metrics}
			for _, a := range tt.added {
				c.add(a.run, a.all)
			}
			if diff := cmp.Diff(tt.want, describeResults(t, &c)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if c.succeeded != len(tt.added) {
				t.Errorf("%d repetitions succeeded, want %d", c.succeeded, len(tt.added))
			}
		})
	}
}

func TestResultsDoNotDependOnTheOrderInWhichRepetitionsAreRead(t *testing.T) {
	var forward, backward cellValues
	for n := 1; n <= 7; n++ {
		forward.add(store.Run{Lineage: event.Lineage{Repetition: n}}, summarised(float64(n*n%5)))
		backward.add(store.Run{Lineage: event.Lineage{Repetition: 8 - n}}, summarised(float64((8-n)*(8-n)%5)))
	}
	if diff := cmp.Diff(forward.results(newJudge(t)), backward.results(newJudge(t))); diff != "" {
		t.Errorf("(-forward +backward):\n%s", diff)
	}
}

func TestRunsThatCount(t *testing.T) {
	for name, tt := range map[string]struct {
		run  store.Run
		want bool
	}{
		"a repetition that succeeded counts":    {store.Run{Outcome: event.Succeeded}, true},
		"a warm-up does not count":              {store.Run{Outcome: event.Succeeded, Lineage: event.Lineage{Warmup: true}}, false},
		"a failed repetition does not count":    {store.Run{Outcome: event.Failed}, false},
		"a canceled repetition does not count":  {store.Run{Outcome: event.Canceled}, false},
		"a repetition that runs does not count": {store.Run{Phase: event.PhaseRunning}, false},
	} {
		if got := counts(tt.run); got != tt.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestCellsOfAPageOfResults(t *testing.T) {
	for name, tt := range map[string]struct {
		set  Set
		n    int
		want int
	}{
		"a page has as many cells as were asked for":               {Set{Repetitions: 1}, 50, 50},
		"a page has the cells of 1,000 runs, warm-ups included":    {Set{Repetitions: 9, Warmup: 1}, 500, 100},
		"a page has one cell, even if that has more than the runs": {Set{Repetitions: 10_000}, 50, 1},
	} {
		if got := cellsFor(tt.set, tt.n, maxPageRuns); got != tt.want {
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
			var c cellValues
			for i, all := range repetitions {
				c.add(store.Run{Lineage: event.Lineage{Repetition: i + 1}}, all)
			}
			if got := c.results(j); len(got) != 10 || got[0].Interval == nil {
				b.Fatal(got)
			}
		}
	}
}
