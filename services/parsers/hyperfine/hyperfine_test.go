package hyperfine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/hyperfine"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
)

func parse(tb testing.TB, text string) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, hyperfine.Kind(), text)
}

func capture(tb testing.TB, name string) string {
	tb.Helper()
	return reporttest.Capture(tb, name)
}

func TestTimesAreThoseOfTheTool(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"one.json": {
			"ok", "command=true: median 0.000637327 s headline", "command=true: mean 0.0196932408 s", "command=true: stddev 0.0340486597775226 s",
			"command=true: min 0.00061874 s", "command=true: max 0.079204035 s", "command=true: user 0.000566 s", "command=true: system 0 s",
			"command=true: runs 5 1",
		},
		"single.json": {
			"ok", "command=sleep 0.01: median 0.01119473544 s headline", "command=sleep 0.01: mean 0.01119473544 s",
			"command=sleep 0.01: min 0.01119473544 s", "command=sleep 0.01: max 0.01119473544 s", "command=sleep 0.01: user 0.00037896 s",
			"command=sleep 0.01: system 0.0010678 s", "command=sleep 0.01: runs 1 1",
		},
	} {
		if diff := cmp.Diff(want, reporttest.Lines(parse(t, capture(t, name)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestParametersAreLabels(t *testing.T) {
	t.Parallel()
	want := []string{
		"ok", "command=sleep 0.01 n=1: median 0.0133502162 s", "command=sleep 0.02 n=2: median 0.0270198107 s",
		"command=sleep 0.03 n=3: median 0.0307375537 s",
	}
	if diff := cmp.Diff(want, reporttest.Lines(parse(t, capture(t, "param.json")), "median")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text := `{"results":[{"command":"a","mean":1,"median":2,"user":0,"system":0,"min":1,"max":3,"memory_usage_byte":[1024,4096,512],` +
		`"parameters":{"command":"x","index":"y","n":7}},{"command":"a","mean":1,"median":4,"user":0,"system":0,"min":1,"max":3}]}`
	want = []string{"ok", "command=a index=1 n=7: median 2 s", "command=a index=1 n=7: memory_usage 4096 B", "command=a index=2: median 4 s"}
	if diff := cmp.Diff(want, reporttest.Lines(parse(t, text), "median", "memory_usage")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFailureIsSaid(t *testing.T) {
	t.Parallel()
	const ended = "failed Command terminated with non-zero exit code: 1. Use the '-i'/'--ignore-failure' option if you want to ignore this. " +
		"Alternatively, use the '--show-output' option to debug what went wrong."
	for text, want := range map[string][]string{
		capture(t, "fail.txt"):          {ended},
		capture(t, "fail-with-log.txt"): {ended, "command=true: median 0.0064245569 s"},
		capture(t, "ignore.json"): {
			"partial exit code 3 in 3 of 3 runs, which was ignored, of exit 3", "command=true: median 0 s", "command=exit 3: median 0 s",
		},
		"Benchmark 1: x\nError: Failed to run command 'x': No such file or directory (os error 2)\n": {
			"failed Failed to run command 'x': No such file or directory (os error 2)",
		},
		strings.Replace(capture(t, "one.json"), "0,\n        0", "null,\n        -1", 1): {
			"partial no exit code in 2 of 5 runs, which was ignored, of true", "command=true: median 0.000637327 s",
		},
		strings.Replace(capture(t, "one.json"), `"median": 0.000637327`, `"median": null`, 1): {"partial no median of true"},
		`{"results": []}`:      {"empty no command was run"},
		capture(t, "text.txt"): {"empty no JSON document: hyperfine was run without --export-json"},
		"":                     {"empty no result in the text"},
	} {
		if diff := cmp.Diff(want, reporttest.Lines(parse(t, text), "median")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestOfTwoRunsTheLastCompleteOneCounts(t *testing.T) {
	t.Parallel()
	first, last := capture(t, "three.json"), capture(t, "one.json")
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

func TestParserOfHyperfinePassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind:   hyperfine.Kind(),
		Own:    []string{"one.json", "three.json", "param.json"},
		Others: []string{"{}", "[]", `{"fio version":"fio-3.33"}`, `{"results":[]}`, `{"results": [{"name": "a"}]}`},
		Open:   `{"results": [{"command": `,
		Cuts: []reporttest.Cut{
			{File: "one.json", End: "}", NoHeadline: true, Bytes: true},
			{File: "three.json", End: "}", NoHeadline: true, Bytes: true},
			{File: "ignore.json", End: "}", NoHeadline: true, Bytes: true},
		},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	reporttest.Fuzz(f, hyperfine.Kind())
}

func BenchmarkParse(b *testing.B) {
	one := capture(b, "param.json")
	begin, end := strings.Index(one, `"results": [`)+len(`"results": [`), strings.LastIndex(one, "]")
	text := one[:begin] + strings.Repeat(one[begin:end]+",", 50) + one[begin:]
	reporttest.Benchmark(b, hyperfine.Kind(), text)
}
