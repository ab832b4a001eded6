package series_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/series"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestASeriesIsNamedByAllThatTellsItFromOthers(t *testing.T) {
	for want, s := range map[string]*baiv1.SeriesHistory{
		"rate":                            {Metric: "rate"},
		"rate (MB/s)":                     {Metric: "rate", Unit: "MB/s"},
		"rate {a=1,b=2} (MB/s)":           {Metric: "rate", Unit: "MB/s", Labels: map[string]string{"b": "2", "a": "1"}},
		"rate {a=1} (MB/s), cell size=1K": {Metric: "rate", Unit: "MB/s", Labels: map[string]string{"a": "1"}, Cell: "size=1K"},
	} {
		if got := series.Name(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSeriesOfThePlatformItselfAreApart(t *testing.T) {
	own, system := series.WithoutSystem([]*baiv1.SeriesHistory{{Metric: "rate"}, {Metric: "system.cpu", Unit: "a"}, {Metric: "system.cpu"}, {Metric: "system"}})
	if diff := cmp.Diff([]string{"rate", "system"}, series.MetricNames(own)); diff != "" {
		t.Errorf("own (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"system.cpu"}, system); diff != "" {
		t.Errorf("system (-want +got):\n%s", diff)
	}
}

func TestVersionsAtAChange(t *testing.T) {
	for want, c := range map[string]*baiv1.HistoryChange{
		"":           {},
		"v1":         {VersionBefore: "v1", VersionAfter: "v1"},
		"v1 to v2":   {VersionBefore: "v1", VersionAfter: "v2"},
		"none to v2": {VersionAfter: "v2"},
		"v1 to none": {VersionBefore: "v1"},
	} {
		if got := series.Versions(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestHowManyRunsShowAnEffect(t *testing.T) {
	for want, tt := range map[string]struct {
		needed  *baiv1.NeededRuns
		change  func(*baiv1.SeriesPower)
		seconds float64
	}{
		"": {},
		"2 % is shown by 9 runs a side (7 to 14), which take 3h00m together": {needed: &baiv1.NeededRuns{RunsASide: 9, Low: 7, High: 14}, seconds: 600},
		"2 % is shown by 9 runs a side (7 to 14)":                            {needed: &baiv1.NeededRuns{RunsASide: 9, Low: 7, High: 14}},
		"2 % is shown by 9 runs a side (7 to more than 10,000)":              {needed: &baiv1.NeededRuns{RunsASide: 9, Low: 7}, seconds: math.NaN()},
		"2 % is shown by 4 runs a side":                                      {needed: &baiv1.NeededRuns{RunsASide: 4, Low: 4, High: 4}, seconds: math.Inf(1)},
		"2 % is not shown by 10,000 runs a side":                             {needed: &baiv1.NeededRuns{Low: 8000}},
		"no number of runs shows 2 %: the median is 0, so that a change has no percents": {
			needed: &baiv1.NeededRuns{}, change: func(s *baiv1.SeriesPower) { s.Absolute = true },
		},
	} {
		s := &baiv1.SeriesPower{Metric: "rate", Needed: tt.needed}
		if tt.change != nil {
			tt.change(s)
		}
		p := series.Powers(&baiv1.PlanPowerResponse{RunSeconds: tt.seconds, Series: []*baiv1.SeriesPower{s}})[0]
		if got := p.Answer("2 %"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	unknown := series.Powers(&baiv1.PlanPowerResponse{Series: []*baiv1.SeriesPower{{Lacking: 3, Needed: &baiv1.NeededRuns{}}}})[0]
	if got := unknown.Answer("2 %"); got != "" {
		t.Errorf("%q without a known spread", got)
	}
}

func TestAHistoryThatContradictsItselfIsShown(t *testing.T) {
	h := series.Histories(&baiv1.QueryHistoryResponse{
		Runs: []*baiv1.HistoryRun{{RunId: "r"}},
		Series: []*baiv1.SeriesHistory{{
			Points:  []*baiv1.HistoryPoint{{Run: 7, Value: math.NaN()}, {Run: -1, Value: math.Inf(1)}},
			Levels:  []*baiv1.HistoryLevel{{First: -3, Last: 9, Median: math.NaN()}, {First: 9, Last: 9}},
			Changes: []*baiv1.HistoryChange{{Index: 9, Magnitude: math.Inf(1), RangeFirst: -9, RangeLast: 99}, {Index: -3, Kind: series.Environment}},
		}},
	})
	for _, one := range h {
		if n := len(one.Table(true).Rows); n != 2 {
			t.Errorf("%d rows", n)
		}
		if n := len(one.Sentences()); n != 4 {
			t.Errorf("%d lines", n)
		}
		if one.Chart().SVG() == "" {
			t.Error("no plot")
		}
	}
	if n := len(series.CSV(h)); n != 3 {
		t.Errorf("%d rows of CSV", n)
	}
}

func TestTheHorizontalAxisHasVersionsWhereTheyAreFew(t *testing.T) {
	for name, tt := range map[string]struct {
		every, n    int // runs of a version, and runs
		hours       int // from a run to the next one
		label, last string
		ticks       int
	}{
		"few versions":                    {every: 3, n: 12, hours: 24, label: "version", last: "v3", ticks: 4},
		"as many versions as have room":   {every: 1, n: 12, hours: 24, label: "version", last: "v11", ticks: 12},
		"too many versions":               {every: 1, n: 13, hours: 24, label: "time of the run", last: "2026-03-13", ticks: 5},
		"no version":                      {n: 6, hours: 24, label: "time of the run", last: "2026-03-06", ticks: 6},
		"no version, and runs of a day":   {n: 6, hours: 1, label: "time of the run", last: "05:00", ticks: 6},
		"no version, and a single run":    {n: 1, label: "time of the run", last: "00:00", ticks: 1},
		"no version, and a thousand runs": {n: 1000, hours: 24, label: "time of the run", last: "2028-06-13", ticks: 6},
	} {
		t.Run(name, func(t *testing.T) {
			all := &baiv1.QueryHistoryResponse{Series: []*baiv1.SeriesHistory{{Metric: "rate"}}}
			for i := range tt.n {
				r := &baiv1.HistoryRun{Time: timestamppb.New(time.Date(2026, 3, 1, i*tt.hours, 0, 0, 0, time.Local))}
				if tt.every > 0 {
					r.Version = fmt.Sprintf("v%d", i/tt.every)
				}
				all.Runs = append(all.Runs, r)
				all.Series[0].Points = append(all.Series[0].Points, &baiv1.HistoryPoint{Run: int32(i), Value: 1})
			}
			c := series.Histories(all)[0].Chart()
			if got := c.Ticks[len(c.Ticks)-1].Text; c.XLabel != tt.label || len(c.Ticks) != tt.ticks || got != tt.last {
				t.Errorf("%s, %d ticks, the last one %s", c.XLabel, len(c.Ticks), got)
			}
		})
	}
}

func TestAnOutlookNamesTheCostAndWhatAlarmsCanSee(t *testing.T) {
	t.Parallel()
	shows := func(metric string, value float64) *baiv1.SeriesPower {
		return &baiv1.SeriesPower{Metric: metric, Detectable: []*baiv1.DetectableChange{
			{RunsASide: 3}, {RunsASide: 5, Change: &baiv1.Difference{Value: value, Relative: true}}, {RunsASide: 10, Change: &baiv1.Difference{Value: value / 2, Relative: true}},
		}}
	}
	plan := &baiv1.PlanPowerResponse{
		RunCost: &baiv1.RunCost{Amount: 0.5, Currency: "USD", Runs: 12},
		Series:  []*baiv1.SeriesPower{shows("a", 0.03), shows("b", 0.1), shows("c", 0.2), shows("d", 0.01), shows("other", 0.5), {Metric: "e", Lacking: 3}},
	}
	want := []string{
		"a run of sums costs about 0.5 USD, the median of its newest 12 runs",
		"its alarms: 5 runs a side show a change of 3.0 % of a, 10.0 % of b, 20.0 % of c, 1 more",
		"its alarms: before a change is seen, e needs 3 more runs",
	}
	if diff := cmp.Diff(want, series.Outlook(plan, "sums", []string{"a", "b", "c", "d", "e"}, 5)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := series.Outlook(&baiv1.PlanPowerResponse{}, "sums", []string{"a"}, 5); got != nil {
		t.Errorf("nothing is known: %q", got)
	}
}
