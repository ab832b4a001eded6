package main_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	"github.com/benchmark-ai/bai/client-lib/internal/golden"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// addTask sets what the platform knows about the task checksums, and its baselines.
func addTask(p *baitest.Platform) {
	p.SetHistory("checksums", checksums())
	p.SetHistory("steady", &baiv1.QueryHistoryResponse{Runs: historyRuns(2), Series: []*baiv1.SeriesHistory{{
		Metric: "rate", Points: []*baiv1.HistoryPoint{{Value: 1}, {Run: 1, Value: 1.5}}, Levels: []*baiv1.HistoryLevel{{Last: 1, Median: 1.25}},
		Notes: []string{"2 rows have a value: at least 10 are needed to say that something changed"},
	}}})
	p.SetHistory("empty", &baiv1.QueryHistoryResponse{Excluded: 1})
	p.SetPower("checksums", checksumsPower())
	p.SetPower("empty", &baiv1.PlanPowerResponse{})
	priced := checksumsPower()
	priced.RunCost = &baiv1.RunCost{Amount: 0.51, Currency: "USD", Runs: 12}
	p.SetPower("priced", priced)
	addRankings(p)
	p.AddBaseline(&baiv1.Baseline{Name: "main", Namespace: "default", Revision: 2, Revisions: []*baiv1.BaselineRevision{
		{Revision: 2, Operand: "checksums@-14d", RunIds: []string{helloID, failedID}, RunCount: 2, Owner: "ann", Reason: "the release of \x1b[31mtoday", CreateTime: timestamppb.New(newYear)},
		{Revision: 1, Operand: "hello", RunIds: []string{helloID}, RunCount: 1, Owner: "bob", CreateTime: timestamppb.New(newYear.AddDate(0, -1, 0))},
	}})
	p.AddBaseline(&baiv1.Baseline{Name: "release", Namespace: "default", Revision: 1, Revisions: []*baiv1.BaselineRevision{
		{Revision: 1, Operand: "sizes", RunIds: []string{"r1", "r2"}, RunCount: 2, SetId: sizesID, Owner: "bob", Reason: "what customers have had since spring, and what they measured on their own machines", CreateTime: timestamppb.New(newYear)},
	}})
}

// historyRuns returns runs on n nights. Their version changes every fourth night, and their
// machine after the tenth.
func historyRuns(n int) []*baiv1.HistoryRun {
	var runs []*baiv1.HistoryRun
	for i := range n {
		r := &baiv1.HistoryRun{
			RunId: fmt.Sprintf("01kdyt1q88%016d", i+1), Name: fmt.Sprintf("nightly-%d", i+1), Time: timestamppb.New(newYear.AddDate(0, 0, i-n)),
			Version: fmt.Sprintf("v1.%d", i/4), Machine: "2c26b46b68ffc68ff99b453c1d304134", Nodes: []string{"node-7"}, Image: "debian:12-slim",
			DescriptorSha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", Complete: i != 2,
		}
		if i >= 10 {
			r.Machine, r.Nodes = "fcde2b2edba56bf408601fb721fe9b5c", []string{"node-8", "node-9"}
		}
		if i == n-1 {
			r.Name = ""
		}
		runs = append(runs, r)
	}
	return runs
}

// checksums is a history with each kind of change.
func checksums() *baiv1.QueryHistoryResponse {
	rate := &baiv1.SeriesHistory{
		Metric: "rate", Unit: "MB/s", Direction: "higher",
		Levels: []*baiv1.HistoryLevel{{First: 0, Last: 5, Median: 101.5}, {First: 6, Last: 9, Median: 94.75}, {First: 10, Last: 11, Median: 120}},
		Changes: []*baiv1.HistoryChange{
			{
				Index: 6, Kind: "step", Direction: "down", Verdict: "regression", Before: 101.5, After: 94.75, Magnitude: -0.0665, Interval: &baiv1.Interval{Low: -0.083, High: -0.049, Level: 0.95},
				P: 3.1e-7, RangeFirst: 5, RangeLast: 7, VersionBefore: "v1.0", VersionAfter: "v1.1", Subjects: []string{"image", "descriptor"},
			},
			{
				Index: 10, Kind: "environment", Direction: "up", Verdict: "change", Before: 94.75, After: 120, Magnitude: 0.266, P: 1, RangeFirst: 10, RangeLast: 10,
				VersionBefore: "v1.2", VersionAfter: "v1.2", Subjects: []string{"machine"},
			},
		},
		Notes: []string{"the machines are others from point 10 on: no change is seen before 8 more"},
	}
	errors := &baiv1.SeriesHistory{
		Metric: "errors", Labels: map[string]string{"op": "read \x1b[31m"}, Cell: "size=1K",
		Levels: []*baiv1.HistoryLevel{{First: 0, Last: 0}, {First: 1, Last: 1, Median: 5}},
		Changes: []*baiv1.HistoryChange{
			{Index: 1, Kind: "drift", Direction: "up", Verdict: "change", After: 5, Shift: 5, ShiftInterval: &baiv1.Interval{Low: 4, High: 6, Level: 0.95}, Magnitude: math.NaN(), P: 0.004, RangeFirst: 1, RangeLast: 1, VersionAfter: "v1.0", Subjects: []string{"code"}},
		},
	}
	h := &baiv1.QueryHistoryResponse{Runs: historyRuns(12), Excluded: 3, Truncated: true, Series: []*baiv1.SeriesHistory{
		errors, rate, {Metric: "system.cpu", Unit: "cores", Points: []*baiv1.HistoryPoint{{Value: 2}}, Levels: []*baiv1.HistoryLevel{{Median: 2}}},
	}}
	errors.Points = []*baiv1.HistoryPoint{{Value: 0}, {Run: 1, Value: 5}}
	for i, v := range []float64{101.25, 102, 101.5, 100.125, 101.75, 101.5, 94.75, 95, 94.5, 94.75, 119.5, 120.5} {
		point := &baiv1.HistoryPoint{Run: int32(i), Value: v, Samples: 8, Interval: &baiv1.Interval{Low: v - 1, High: v + 1.5, Level: 0.96}}
		if i == 3 {
			point.Samples, point.Interval = 2, nil
		}
		rate.Points = append(rate.Points, point)
	}
	for _, s := range h.GetSeries() {
		for _, c := range s.GetChanges() {
			run := h.GetRuns()[s.GetPoints()[c.GetIndex()].GetRun()]
			c.RunId, c.Time = run.GetRunId(), run.GetTime()
		}
	}
	return h
}

// checksumsPower is what runs of each kind of series can show.
func checksumsPower() *baiv1.PlanPowerResponse {
	change := func(runs int32, relative bool, value float64) *baiv1.DetectableChange {
		return &baiv1.DetectableChange{RunsASide: runs, Change: &baiv1.Difference{Value: value, Relative: relative, Interval: &baiv1.Interval{Low: 0.75 * value, High: 1.5 * value, Level: 0.95}}}
	}
	nan := math.NaN()
	return &baiv1.PlanPowerResponse{RunSeconds: 600, Series: []*baiv1.SeriesPower{
		{
			Metric: "errors", Unit: "1/s", Points: 30, Spread: 1.5, Absolute: true, Needed: &baiv1.NeededRuns{},
			Detectable: []*baiv1.DetectableChange{{RunsASide: 3}, change(5, false, 4)},
		},
		{
			Metric: "latency", Unit: "ms", Cell: "size=1K", Points: 7, Lacking: 3, Spread: nan, Needed: &baiv1.NeededRuns{},
			Detectable: []*baiv1.DetectableChange{{RunsASide: 3}, {RunsASide: 5}},
		},
		{
			Metric: "rate", Unit: "MB/s", Points: 30, Spread: 0.0121, Needed: &baiv1.NeededRuns{RunsASide: 9, Low: 7, High: 14},
			Detectable: []*baiv1.DetectableChange{{RunsASide: 3}, change(5, true, 0.031), change(10, true, 0.0187), change(20, true, 0.0121)},
		},
		{Metric: "wild", Points: 12, Spread: 0.9, Needed: &baiv1.NeededRuns{Low: 8000}, Detectable: []*baiv1.DetectableChange{{RunsASide: 3}, change(5, true, 2.5)}},
		{Metric: "system.cpu", Points: 12, Spread: nan},
	}}
}

func TestTheFlagsSelectRuns(t *testing.T) {
	p := newFixture(t, newYear)
	got := runPiped(t, p.Addr(), strings.Fields("history rate --metric loss --task checksums --namespace pets --since 2026-01-01T00:00:00Z --until 2026-02-01T00:00:00Z --limit 7 --label branch=main -o name")...)
	expect(t, got, 0, "")
	got = runPiped(t, p.Addr(), strings.Fields("power --task checksums --metric rate --runs 4,6 --effect 2.5% -o name")...)
	expect(t, got, 0, "")
	want := []proto.Message{
		&baiv1.QueryHistoryRequest{
			Task: "checksums", Namespace: "pets", Metrics: []string{"rate", "loss"}, Limit: 7, Labels: map[string]string{"branch": "main"}, WithoutPoints: true,
			Since: timestamppb.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), Until: timestamppb.New(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)),
		},
		&baiv1.PlanPowerRequest{Task: "checksums", Metrics: []string{"rate"}, Runs: []int32{4, 6}, Effect: 0.025},
	}
	requests := p.AnalysisRequests()
	for i, r := range requests {
		if i >= len(want) || !proto.Equal(r, want[i]) {
			t.Errorf("request %d: %v", i, r)
		}
	}
	if len(requests) != len(want) {
		t.Errorf("%d requests", len(requests))
	}
}

func TestABaselineIsSetAndDeleted(t *testing.T) {
	p := newFixture(t, newYear)
	for _, line := range []string{"baseline set main night-3 --owner eve --reason better", "baseline delete release"} {
		expect(t, runPiped(t, p.Addr(), strings.Fields(line)...), 0, "")
	}
	c, err := bai.Dial(p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // nothing is lost with it
	b, err := c.Baseline(t.Context(), "", "main")
	if err != nil {
		t.Fatal(err)
	}
	if r := b.GetRevisions()[0]; b.GetRevision() != 3 || r.GetOperand() != "night-3" || r.GetOwner() != "eve" || r.GetReason() != "better" {
		t.Errorf("%v", b)
	}
	if _, err := c.Baseline(t.Context(), "", "release"); err == nil {
		t.Error("release was not deleted")
	}
}

func TestTheExamplesOnHistoryAreRealOutput(t *testing.T) {
	page := filepath.Join("..", "..", "..", "docs", "history.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```\n\\$ baictl ((?:compare|history|changes|power|baseline) [^\n]*)\n(.*?)```\n")
	n := 0
	got := example.ReplaceAllStringFunc(string(text), func(block string) string {
		n++
		line := example.FindStringSubmatch(block)[1]
		p := newFixture(t, newYear)
		return "```\n$ baictl " + line + "\n" + runPiped(t, p.Addr(), strings.Fields(line)...).out + "```\n"
	})
	if n == 0 {
		t.Error("no examples")
	}
	golden.Check(t, page, got)
}

// addRankings adds what the platform answers where the runs of tasks are ranked by the type of their machines.
func addRankings(p *baitest.Platform) {
	group := func(value string, median float64, best bool, alike ...int32) *baiv1.RankedGroup {
		return &baiv1.RankedGroup{Value: value, Best: best, Alike: alike, Values: &baiv1.SideValues{
			N: 9, Median: median, Interval: &baiv1.Interval{Low: 0.97 * median, High: 1.04 * median, Level: 0.9609375},
		}}
	}
	p.SetRanking("task:resnet", "hardware.instance_type", &baiv1.RankRunsResponse{
		Runs: 29, Excluded: 2, Notes: []string{"1 of 29 runs left out: their hardware.instance_type is not known"},
		Series: []*baiv1.SeriesRanking{{
			Metric: "cost.per.images", Unit: "USD", Direction: "lower", Needed: 5,
			Groups: []*baiv1.RankedGroup{
				group("g5.xlarge", 2.01e-05, true, 1), group("p3.2xlarge", 2.02e-05, true, 0), group("c5.9xlarge", 5.4e-05, false),
				{Value: "t3.\x1b[31msmall", Lacking: 3, Values: &baiv1.SideValues{N: 1, Median: 9e-05}},
			},
		}, {
			Metric: "rate", Unit: "images/s", Direction: "higher", Labels: map[string]string{"gpu": "0"}, Needed: 4,
			Groups: []*baiv1.RankedGroup{group("p3.2xlarge", 1200, true), group("g5.xlarge", 900, false)},
		}},
	})
}
