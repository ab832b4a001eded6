package series_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/gateway/series"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// summarised returns the summaries of a run with these medians of metric m.
func summarised(medians ...float64) *store.Summaries {
	all := &store.Summaries{Complete: true}
	for _, v := range medians {
		all.Summaries = append(all.Summaries, store.Summary{Metric: "m", Unit: "ms", N: 1000, Median: store.Float(v)})
	}
	return all
}

// describe describes the series on one line.
func describe(b *series.Builder) string {
	var lines []string
	for _, s := range b.Series() {
		text := s.Metric
		if len(s.Labels) > 0 {
			text += fmt.Sprint(s.Labels)
		}
		text += " " + s.Unit + ":"
		for _, p := range s.Points {
			text += fmt.Sprintf(" %d=%g", p.Index, p.Value)
		}
		if s.Direction != "" {
			text += " " + string(s.Direction)
		}
		lines = append(lines, text)
	}
	text := strings.Join(lines, ", ")
	if b.Unsummarised > 0 {
		text += fmt.Sprintf("; %d unsummarised", b.Unsummarised)
	}
	if b.Incomplete > 0 {
		text += fmt.Sprintf("; %d incomplete", b.Incomplete)
	}
	return text
}

func TestSeriesOfRuns(t *testing.T) {
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
		"a run is one value, however many samples it emitted": {
			added: []added{repetition(1, summarised(3))}, want: "m ms: 1=3",
		},
		"each run is a point": {
			added: []added{repetition(1, summarised(1)), repetition(2, summarised(2)), repetition(3, summarised(9))},
			want:  "m ms: 1=1 2=2 3=9",
		},
		"values that are not numbers are points, too": {
			added: []added{repetition(1, summarised(math.NaN())), repetition(2, summarised(math.Inf(1))), repetition(3, summarised(7))},
			want:  "m ms: 1=NaN 2=+Inf 3=7",
		},
		"units and labels are series of their own": {
			added: []added{
				repetition(1, summarised(1)),
				repetition(2, one(store.Summary{Metric: "m", Unit: "s", Median: 2})),
				repetition(3, one(store.Summary{Metric: "m", Unit: "ms", Labels: map[string]string{"b": "2", "a": "1"}, Median: 3})),
				repetition(4, one(store.Summary{Metric: "m", Unit: "ms", Labels: map[string]string{"a": "1", "b": "2"}, Median: 5})),
			},
			want: "m ms: 1=1, mmap[a:1 b:2] ms: 3=3 4=5, m s: 2=2",
		},
		"the direction is the one that a summary has": {
			added: []added{repetition(1, summarised(1)), repetition(2, one(store.Summary{Metric: "m", Unit: "ms", Median: 1, Direction: event.Lower}))},
			want:  "m ms: 1=1 2=1 lower",
		},
		"the duration of a run is a metric without a direction": {
			added: []added{lasting(1500*time.Millisecond, nil)}, want: "run.duration s: 1=1.5; 1 unsummarised",
		},
		"the time that a run was queued is a metric, too": {
			added: []added{queued(3*time.Second, nil)}, want: "run.duration s: 1=1, run.queued s: 1=3; 1 unsummarised",
		},
		"a run that started before it was submitted was not queued": {
			added: []added{queued(-time.Second, nil)}, want: "run.duration s: 1=1; 1 unsummarised",
		},
		"a metric of the benchmark with the name of the queued time takes its place": {
			added: []added{queued(time.Second, one(store.Summary{Metric: "run.queued", Unit: "s", Median: 42}))},
			want:  "run.duration s: 1=1, run.queued s: 1=42",
		},
		"a run that ended before its start has no duration": {
			added: []added{lasting(-time.Second, nil)}, want: "; 1 unsummarised",
		},
		"a metric of the benchmark with the name of the duration takes its place": {
			added: []added{lasting(time.Second, one(store.Summary{Metric: "run.duration", Unit: "s", Median: 42}))},
			want:  "run.duration s: 1=42",
		},
		"a metric of the benchmark in another unit is beside the duration": {
			added: []added{lasting(time.Second, one(store.Summary{Metric: "run.duration", Unit: "ms", Median: 42}))},
			want:  "run.duration ms: 1=42, run.duration s: 1=1",
		},
		"metrics that were not asked for are left out": {
			metrics: []string{"m"}, added: []added{lasting(time.Second, summarised(1))}, want: "m ms: 1=1",
		},
		"what the platform measures on machines is left out unless it is asked for": {
			added: []added{repetition(1, one(store.Summary{Metric: "system.cpu", Unit: "1", Median: 1}))}, want: "",
		},
		"it is there by its name": {
			metrics: []string{"system.cpu"}, added: []added{repetition(1, one(store.Summary{Metric: "system.cpu", Unit: "1", Median: 1}))}, want: "system.cpu 1: 1=1",
		},
		"a run whose summary lacks samples has points, and is counted": {
			added: []added{repetition(1, &store.Summaries{Summaries: summarised(1).Summaries})}, want: "m ms: 1=1; 1 incomplete",
		},
		"without runs there are no series": {},
	} {
		t.Run(name, func(t *testing.T) {
			b := series.Builder{Metrics: tt.metrics}
			for _, a := range tt.added {
				b.Add(a.run.Repetition, a.run, a.all)
			}
			if diff := cmp.Diff(tt.want, describe(&b)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if b.Runs != len(tt.added) {
				t.Errorf("%d runs were added, want %d", b.Runs, len(tt.added))
			}
		})
	}
}

func TestSeriesDoNotDependOnTheOrderInWhichRunsAreAdded(t *testing.T) {
	var forward, backward series.Builder
	for n := 1; n <= 7; n++ {
		forward.Add(n, store.Run{}, summarised(float64(n*n%5)))
		backward.Add(8-n, store.Run{}, summarised(float64((8-n)*(8-n)%5)))
	}
	if diff := cmp.Diff(forward.Series(), backward.Series()); diff != "" {
		t.Errorf("(-forward +backward):\n%s", diff)
	}
}

func TestSeriesStayAsTheyWereWhileRunsAreAdded(t *testing.T) {
	var b series.Builder
	b.Add(2, store.Run{}, summarised(2))
	before := b.Series()
	b.Add(1, store.Run{}, summarised(1))
	if got := before[0].Points; len(got) != 1 || got[0].Value != 2 {
		t.Errorf("%+v", got)
	}
}
