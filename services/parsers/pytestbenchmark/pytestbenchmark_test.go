package pytestbenchmark_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/pytestbenchmark"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
)

func parse(tb testing.TB, text string) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, pytestbenchmark.Kind(), text)
}

func capture(tb testing.TB, name string) string {
	tb.Helper()
	return reporttest.Capture(tb, name)
}

func TestStatisticsAreThoseOfTheTool(t *testing.T) {
	t.Parallel()
	const id = "benchmark=test_b.py::test_sum: "
	r := parse(t, capture(t, "one.json"))
	want := []string{
		"ok", id + "median 1.02160001915763e-05 s headline", id + "mean 6.95027391482446e-05 s", id + "stddev 0.00115081052975644 s",
		id + "min 1.01849991551717e-05 s", id + "max 0.0445742550000432 s", id + "q1 1.02049998531584e-05 s", id + "q3 1.04552505035826e-05 s",
		id + "iqr 2.50250650424277e-07 s", id + "ops 14387.9221488964 op/s", id + "rounds 3661 1", id + "iterations 1 1",
		id + "total 0.254449528021723 s",
	}
	if diff := cmp.Diff(want, reporttest.Lines(r)); diff != "" || r.Version != "5.3.1" {
		t.Errorf("version %s (-want +got):\n%s", r.Version, diff)
	}
}

func TestParametersAndGroupAreLabels(t *testing.T) {
	t.Parallel()
	want := []string{
		"ok", "benchmark=test_b.py::test_sum: median 1.59840001288103e-05 s",
		"benchmark=test_b.py::test_sleep[1] n=1: median 0.00336867900023208 s",
		"benchmark=test_b.py::test_sleep[2] n=2: median 0.00704050800050027 s",
		"benchmark=test_b.py::test_join group=strings: median 2.0980000954296e-07 s",
	}
	if diff := cmp.Diff(want, reporttest.Lines(parse(t, capture(t, "four.json")), "median")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	stats := `"stats":{"min":1,"max":1,"mean":1,"stddev":0,"rounds":1,"median":1,"iqr":0,"q1":1,"q3":1,"ops":1}}`
	text := `{"machine_info":{},"benchmarks":[{"fullname":"a","params":{"group":"x","l":[1],"s":"\"t\"","benchmark":3},` + stats +
		`,{"fullname":"a","params":null,` + stats + `],"version":"3.4.1"}`
	want = []string{"ok", `benchmark=a index=1 s="t": median 1 s`, "benchmark=a index=2: median 1 s"}
	if diff := cmp.Diff(want, reporttest.Lines(parse(t, text), "median")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFailureIsSaid(t *testing.T) {
	t.Parallel()
	one := capture(t, "one.json")
	for text, want := range map[string][]string{
		capture(t, "bad-with-log.txt"): {
			"failed FAILED test_f.py::test_bad - assert False",
			"benchmark=test_f.py::test_ok: median 5.29799945070408e-07 s", "benchmark=test_f.py::test_bad: median 5.28800046595279e-07 s",
		},
		one + "ERROR: Performance has regressed:\n\ttest_sum - Field 'median' has failed\n": {
			"failed ERROR: Performance has regressed:", "benchmark=test_b.py::test_sum: median 1.02160001915763e-05 s",
		},
		"ERROR: file or directory not found: x\n":                         {"failed ERROR: file or directory not found: x"},
		strings.Replace(one, `"median": 1.`, `"median": NaN, "x": 1.`, 1): {"partial no number: median of test_b.py::test_sum"},
		`{"machine_info": {}, "benchmarks": []}`:                          {"empty no benchmark was run"},
		capture(t, "log.txt"):                                             {"empty no result in the text"},
		"":                                                                {"empty no result in the text"},
	} {
		if diff := cmp.Diff(want, reporttest.Lines(parse(t, text), "median")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestOfTwoRunsTheLastCompleteOneCounts(t *testing.T) {
	t.Parallel()
	first, last := capture(t, "four.json"), capture(t, "one.json")
	for _, text := range []string{first + last, first[:len(first)/2] + last, "some warning\n{ no JSON\n" + last + "[0]{}"} {
		if diff := cmp.Diff(parse(t, last), parse(t, text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	r := parse(t, first+last[:len(last)*3/4])
	if r.State != report.Partial || r.Reason != "the JSON document ends in the middle" || len(r.Metrics) != len(parse(t, first).Metrics) {
		t.Errorf("the last is cut: %q", reporttest.Lines(r))
	}
}

func TestParserOfPytestBenchmarkPassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind:   pytestbenchmark.Kind(),
		Own:    []string{"one.json", "four.json", "bad.json"},
		Others: []string{"{}", "[]", `{"fio version":"fio-3.33"}`, `{"benchmarks":[]}`, `{"a": "machine_info"}`},
		Open:   `{"machine_info":{},"benchmarks":[{"fullname":`,
		Cuts: []reporttest.Cut{
			{File: "four.json", End: "}", NoHeadline: true, Bytes: true}, {File: "one.json", End: "}", NoHeadline: true, Bytes: true},
		},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	reporttest.Fuzz(f, pytestbenchmark.Kind())
}

func BenchmarkParse(b *testing.B) {
	one := capture(b, "four.json")
	begin, end := strings.Index(one, `"benchmarks": [`)+len(`"benchmarks": [`), strings.LastIndex(one, "]")
	text := one[:begin] + strings.Repeat(one[begin:end]+",", 50) + one[begin:]
	reporttest.Benchmark(b, pytestbenchmark.Kind(), text)
}
