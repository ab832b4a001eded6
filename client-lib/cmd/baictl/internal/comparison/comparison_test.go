package comparison_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/comparison"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/points"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/analyst/judge/compare"
)

const (
	goText = "pkg: example.org/a\nBenchmarkA-2 10 200 ns/op 5 MB/s\nBenchmarkA-2 10 250 ns/op 6 MB/s\nBenchmarkB 1 7 widgets\nBenchmarkC 1\n"
	csv    = "series,time,value,higher_is_better\nrate,2026-03-01T00:00:00Z,1,true\nrate,2026-03-02T00:00:00Z,,true\nrate,2026-03-03T00:00:00Z,3,true\n"
	bmf    = `{"sort":{"latency":{"value":1000000000,"lower_value":1,"upper_value":2}},"mine":{"beans":{"value":3}}}`
)

// describeSide describes the results of a file.
func describeSide(s comparison.Side) string {
	var all []string
	for _, one := range s.Series {
		all = append(all, fmt.Sprintf("%s %s %v %s %.3g", one.Metric, one.Unit, one.Labels, one.Direction, one.Values))
	}
	return strings.Join(all, "\n")
}

func TestResultsAreReadFromAFileOfAnyKind(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"output of go test -bench": {goText, `sec/op  map[benchmark:A-2 package:example.org/a] lower [2e-07 2.5e-07]
B/s  map[benchmark:A-2 package:example.org/a] higher [5e+06 6e+06]
widgets  map[benchmark:B package:example.org/a]  [7]
warnings: f:5: missing measurements`},
		"a series as CSV":             {csv, "rate  map[] higher [1 NaN 3]"},
		"CSV of a program on Windows": {"\uFEFF" + strings.ReplaceAll(csv, "\n", "\r\n"), "rate  map[] higher [1 NaN 3]"},
		"the Bencher Metric Format":   {"\n " + bmf, "latency s map[benchmark:sort] lower [1]\nbeans 1 map[benchmark:mine]  [3]"},
		"nothing":                     {"", ""},
		"CSV with a fault":            {strings.Replace(csv, ",3,", ",three,", 1), `fault in line 4`},
		"JSON that ends early":        {bmf[:20], "it is no whole Bencher Metric Format: the JSON ends early"},
	} {
		t.Run(name, func(t *testing.T) {
			var warnings strings.Builder
			s, err := comparison.Read("f", strings.NewReader(tt.text), &warnings)
			got := describeSide(s)
			if fault, ok := errors.AsType[*points.FaultError](err); ok {
				got = fmt.Sprintf("fault in line %d", fault.Line)
			} else if err != nil {
				got = err.Error()
			}
			if warnings.Len() > 0 {
				got += "\nwarnings: " + strings.TrimSpace(warnings.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// compareTexts compares two files, and describes the answer.
func compareTexts(t *testing.T, base, other string, metrics ...string) string {
	t.Helper()
	comparer, err := compare.New(compare.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	var sides [2]comparison.Side
	for i, text := range []string{base, other} {
		if sides[i], err = comparison.Read([]string{"old", "new"}[i], strings.NewReader(text), io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	c, err := comparison.Compare(comparer, sides[0], sides[1], metrics)
	if err != nil {
		return err.Error()
	}
	all := []string{comparison.Summary(c)}
	for _, s := range c.GetSeries() {
		all = append(all, comparison.Name(s)+": "+s.GetVerdict())
	}
	return strings.Join(append(all, c.GetNotes()...), "\n")
}

func TestSeriesThatBothFilesHaveAreCompared(t *testing.T) {
	lines := func(format string, n int) (text string) {
		for i := range n {
			text += fmt.Sprintf(format, i)
		}
		return text
	}
	for name, tt := range map[string]struct {
		base, other string
		metrics     []string
		want        string
	}{
		"a time that is longer is worse": {
			base: lines("BenchmarkA 1 10%d ns/op\n", 9), other: lines("BenchmarkA 1 20%d ns/op\n", 9), want: "1 series: 1 worse\nsec/op {benchmark=A}: worse",
		},
		"a rate that is higher is better": {
			base: lines("BenchmarkA 1 1%d MB/s\n", 9), other: lines("BenchmarkA 1 2%d MB/s\n", 9), want: "1 series: 1 better\nB/s {benchmark=A}: better",
		},
		"benchmarks of two packages are two": {
			base: "pkg: a\nBenchmarkA 1 1 ns/op\npkg: b\nBenchmarkA 1 1 ns/op\n", other: "pkg: b\nBenchmarkA 1 1 ns/op\n",
			want: "1 series: 1 unclear\nsec/op {benchmark=A,package=b}: unclear\nonly old has sec/op {benchmark=A,package=a}",
		},
		"what only one side has is named": {
			base: goText, other: "pkg: example.org/a\nBenchmarkA-2 1 1 ns/op 1 joules\n", want: "1 series: 1 unclear\nsec/op {benchmark=A-2}: unclear\nonly old has B/s {benchmark=A-2}, widgets {benchmark=B}\nonly new has joules {benchmark=A-2}",
		},
		"metrics that were not asked for are left out": {base: goText, other: goText, metrics: []string{"widgets"}, want: "1 series: 1 unclear\nwidgets {benchmark=B}: unclear"},
		"nothing in common is said":                    {base: goText, other: csv, want: "old and new have no metric in common; only old has B/s {benchmark=A-2,package=example.org/a}, sec/op {benchmark=A-2,package=example.org/a}, widgets {benchmark=B,package=example.org/a}; only new has rate"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, compareTexts(t, tt.base, tt.other, tt.metrics...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// pairOf returns the comparison of two runs: a rate with values that differ by a factor, and a
// delay with the given ones.
func pairOf(n int, factor, before, after float64) *baiv1.CompareRunsResponse {
	one := func(metric string, base, other float64) *baiv1.SeriesComparison {
		return &baiv1.SeriesComparison{Metric: metric, Old: &baiv1.SideValues{N: 1, Median: base}, New: &baiv1.SideValues{N: 1, Median: other}}
	}
	rate := 100 + float64(n%3)
	return &baiv1.CompareRunsResponse{Series: []*baiv1.SeriesComparison{one("rate", rate, rate*factor), one("delay", before, after)}}
}

func TestAVerdictOfPairsStandsWhileAnotherSeriesIsWaitedFor(t *testing.T) {
	pairs, err := comparison.NewPairs([]*baiv1.SeriesComparison{{Metric: "rate", Direction: "higher"}, {Metric: "delay", Direction: "lower"}}, 0, 40)
	if err != nil {
		t.Fatal(err)
	}
	state := func() (all []string) {
		for _, s := range pairs.Series() {
			all = append(all, fmt.Sprintf("%s %s %d", s.GetMetric(), s.GetVerdict(), s.GetNew().GetN()))
		}
		return all
	}
	for n := range pairs.Fewest() {
		pairs.Add(pairOf(n, 0.9, 5, 2+float64(n)*float64(n)))
	}
	if diff := cmp.Diff([]string{"rate worse 8", "delay unclear 8"}, state()); diff != "" || pairs.Stand() {
		t.Fatalf("stand %t (-want +got):\n%s", pairs.Stand(), diff)
	}
	for n := range 10 { // by all of them together the rate may be as it was
		if !pairs.Stand() {
			pairs.Add(pairOf(n, 1.2, 5, 90+float64(n)))
		}
	}
	if diff := cmp.Diff([]string{"rate worse 8", "delay worse 13"}, state()); diff != "" || !pairs.Stand() {
		t.Errorf("stand %t (-want +got):\n%s", pairs.Stand(), diff)
	}
}

func TestWhatLacksRunsNamesTheCellWhoseHistoryWouldHelp(t *testing.T) {
	one := func(cell string, history int32) *baiv1.SeriesComparison {
		return &baiv1.SeriesComparison{Metric: "rate", Cell: cell, Verdict: "unclear", Reason: "few_runs", LackingNew: 2, LackingHistory: history}
	}
	c := &baiv1.CompareRunsResponse{Series: []*baiv1.SeriesComparison{one("n=1", 1), one("", 3), one("n=2", 0)}}
	want := []string{
		"rate, cell n=1: unclear, the new side lacks 2 runs; or the task needs 1 run of the cell before them",
		"rate: unclear, the new side lacks 2 runs; or the task needs 3 runs before them",
		"rate, cell n=2: unclear, the new side lacks 2 runs",
	}
	if diff := cmp.Diff(want, comparison.Sentences(c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSidesOfSeveralCellsAreNotRepeated(t *testing.T) {
	c := &baiv1.CompareRunsResponse{Series: []*baiv1.SeriesComparison{{Metric: "rate"}, {Metric: "rate", Cell: "n=1"}}}
	_, err := comparison.ToJudge(c, nil)
	want := "the sides are compared cell by cell, and --rerun repeats single runs: name a run of each"
	if mismatch, ok := errors.AsType[*comparison.MismatchError](err); !ok || mismatch.Message != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestPairsOfSeriesWhoseLabelsReadAlikeAreTwo(t *testing.T) {
	labels := []map[string]string{{"a": "1,b=2"}, {"a": "1", "b": "2"}}
	var series, values []*baiv1.SeriesComparison
	for i, l := range labels {
		series = append(series, &baiv1.SeriesComparison{Metric: "rate", Labels: l})
		values = append(values, &baiv1.SeriesComparison{
			Metric: "rate", Labels: l, Old: &baiv1.SideValues{N: 1, Median: float64(i)}, New: &baiv1.SideValues{N: 1, Median: float64(i)},
		})
	}
	pairs, err := comparison.NewPairs(series, 0, 40)
	if err != nil {
		t.Fatal(err)
	}
	pairs.Add(&baiv1.CompareRunsResponse{Series: values})
	for i, s := range pairs.Series() {
		if got := s.GetOld().GetValues(); len(got) != 1 || got[0] != float64(i) {
			t.Errorf("series %d has the values %v", i, got)
		}
	}
}

func TestCSVHasNoValueWhereThereIsNone(t *testing.T) {
	c := &baiv1.CompareRunsResponse{Series: []*baiv1.SeriesComparison{
		{Metric: "pairs", Test: "signed_ranks", P: math.NaN(), AdjustedP: math.NaN()},
		{Metric: "untested", P: 1, AdjustedP: 1},
		{Metric: "tested", Test: "mann_whitney", P: 0.5, AdjustedP: 1, Needed: 12, Shows: 0.02},
	}}
	var got []string
	for _, row := range comparison.CSV(c) {
		got = append(got, row[0]+": "+strings.Join(row[20:], " "))
	}
	want := []string{"metric: p adjusted_p needed shows", "pairs:    ", "untested: 1 1  ", "tested: 0.5 1 12 0.02"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTextsOfUsersDoNothingInReports(t *testing.T) {
	c := &baiv1.CompareRunsResponse{
		Old: &baiv1.ComparedSide{Operand: "`a`"}, New: &baiv1.ComparedSide{Operand: "<b>"},
		Series: []*baiv1.SeriesComparison{{Metric: "m|<script>\x1b[1m\n", Verdict: "unclear", Reason: "noise", Old: &baiv1.SideValues{}, New: &baiv1.SideValues{}}},
		Notes:  []string{"@everyone [x](http://example.org) <img> *b*"},
	}
	want := "**1 series: 1 unclear**, `<b>` compared with `'a'`\n\n" +
		"| METRIC | OLD | NEW | CHANGE | VERDICT | P | RUNS | ADJUSTED P | TEST |\n|---|---:|---:|---|---|---:|---|---:|---|\n" +
		"| m\\|&lt;script>\ufffd\\[1m  | - | - | - | unclear | - | 0+0 | - | - |\n\n" +
		"* m|&lt;script>\ufffd\\[1m : unclear, the difference may be noise\n" +
		"* @\u200beveryone \\[x](http://example.org) &lt;img> \\*b\\*\n"
	if diff := cmp.Diff(want, comparison.Markdown(c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := comparison.JUnit(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal([]byte(text), new(struct{})); err != nil {
		t.Error(err)
	}
}
