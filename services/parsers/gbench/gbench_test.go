package gbench_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/gbench"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
)

func parse(tb testing.TB, text string) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, gbench.Kind(), text)
}

func capture(tb testing.TB, name string) string {
	tb.Helper()
	return reporttest.Capture(tb, name)
}

func TestTimesAreConverted(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"out.json": {
			"ok", "benchmark=BM_Us/real_time/threads:2: real_time 2.55732834998526e-06 s headline",
			"benchmark=BM_Us/real_time/threads:2: cpu_time 5.105187e-07 s",
		},
		"agg.json": {
			"ok", "benchmark=BM_Copy/64: real_time 3.20182056307973e-08 s headline", "benchmark=BM_Copy/64: cpu_time 5.95945904103981e-09 s",
			"benchmark=BM_Copy/64: items_per_second 167800465.296179 op/s", "benchmark=BM_Copy/64: bytes_per_second 10739229778.9555 B/s",
			"benchmark=BM_Copy/64: real_time_stddev 1.81323485742621e-08 s", "benchmark=BM_Copy/64: cpu_time_stddev 3.89207019337328e-11 s",
			"benchmark=BM_Copy/64: Foo 7 1", "benchmark=BM_Copy/64: rate 167800465.296179 1",
		},
		"reps.json": {
			"ok", "benchmark=BM_Copy/64: real_time 1.07859285488458e-08 s", "benchmark=BM_Copy/64: cpu_time 2.80858248179956e-09 s",
			"benchmark=BM_Copy/64: items_per_second 356051498.035145 op/s", "benchmark=BM_Copy/64: bytes_per_second 22787295874.2493 B/s",
			"benchmark=BM_Copy/64: real_time_stddev 1.36992063713699e-08 s", "benchmark=BM_Copy/64: cpu_time_stddev 2.07700954498232e-10 s",
			"benchmark=BM_Copy/64: Foo 7 1", "benchmark=BM_Copy/64: rate 356051498.035145 1",
			"benchmark=BM_Us/real_time/threads:2: real_time 1.53801477499655e-06 s",
			"benchmark=BM_Us/real_time/threads:2: cpu_time 2.910942e-07 s",
			"benchmark=BM_Us/real_time/threads:2: real_time_stddev 1.51671802365658e-06 s",
			"benchmark=BM_Us/real_time/threads:2: cpu_time_stddev 1.32634564004498e-07 s",
		},
	} {
		if diff := cmp.Diff(want, reporttest.Lines(parse(t, capture(t, name)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAFailedBenchmarkIsNamed(t *testing.T) {
	t.Parallel()
	want := []string{
		"partial BM_Err/1: error no device", "benchmark=BM_Copy/64: cpu_time 2.87176329978226e-09 s",
		"benchmark=BM_Copy/4096: cpu_time 1.4259809767621e-07 s", "benchmark=BM_Us/real_time/threads:2: cpu_time 5.051689e-07 s",
		"benchmark=BM_Err/0: cpu_time 4.72467721731139e-10 s", "benchmark=BM_Big/64: cpu_time 3.74819188976545e-08 s",
		"benchmark=BM_Big/256: cpu_time 1.324400898817e-07 s", "benchmark=BM_Big/1024: cpu_time 4.77670154686078e-07 s",
		"benchmark=BM_Big big_o=N: real_coefficient 2.07016200504022e-09 s", "benchmark=BM_Big: rms 0.0391902635594325 ratio",
	}
	if diff := cmp.Diff(want, reporttest.Lines(parse(t, capture(t, "all.json")), "cpu_time", "real_coefficient", "rms")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{
		capture(t, "allerr.json"):                           "failed BM_Err/1: error no device",
		capture(t, "no-match.txt"):                          "failed Failed to match any benchmarks against regex: nosuch",
		"./b: error: unrecognized command-line flag: --x\n": "failed ./b: error: unrecognized command-line flag: --x",
		capture(t, "console.txt"):                           "empty no result in the text",
		"":                                                  "empty no result in the text",
	} {
		if diff := cmp.Diff([]string{want}, reporttest.Lines(parse(t, text))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// document returns a document with entries.
func document(entries ...string) string {
	context := `{"num_cpus": 2, "library_version": "v1.9.0"}`
	return "{\n  \"context\": " + context + ",\n  \"benchmarks\": [\n" + strings.Join(entries, ",\n") + "\n]}\n"
}

func TestWithoutAnAggregateTheMedianIsThatOfTheRepetitions(t *testing.T) {
	t.Parallel()
	run := func(ms string) string {
		return `{"name":"BM_A","run_type":"iteration","run_name":"BM_A","real_time":` + ms + `,"cpu_time":1,"time_unit":"ms"}`
	}
	old := func(name, us string) string {
		return `{"name":"` + name + `","real_time":` + us + `,"cpu_time":1,"time_unit":"us"}`
	}
	for text, want := range map[string][]string{
		document(run("3"), run("1"), run("20")): {"ok", "benchmark=BM_A: real_time 0.003 s headline"},
		document(run("3"), run("1")):            {"ok", "benchmark=BM_A: real_time 0.002 s headline"},
		document(run("3"), run("NaN")):          {"partial no number: real_time of BM_A"},
		document(run("3"), run("-Infinity")):    {"partial no number: real_time of BM_A"},
		document(old("A", "9"), old("A_mean", "5"), old("A_median", "4"), old("A_stddev", "1")): {
			"ok", "benchmark=A: real_time 4e-06 s headline",
		},
		document(old("A_mean", "5"), old("A_stddev", "1")):                                 {"ok", "benchmark=A: real_time 5e-06 s headline"},
		document(strings.Replace(old("A", "5"), `"us"`, `"h"`, 1)):                         {"empty no unit of time: h"},
		document(`{"name":"A","run_type":"iteration","skipped":true,"skip_message":"no"}`): {"empty all benchmarks were skipped"},
		document(): {"empty no benchmark was run"},
	} {
		r := parse(t, text)
		if diff := cmp.Diff(want, reporttest.Lines(r, "real_time")); diff != "" || r.Version != "v1.9.0" {
			t.Errorf("%s version %q (-want +got):\n%s", text, r.Version, diff)
		}
	}
}

func TestCountersKeepTheirNames(t *testing.T) {
	t.Parallel()
	entry := `{"name":"A\"\\\u00e4","run_type":"iteration","real_time":1,"cpu_time":1,"time_unit":"s","cache misses":5,"x":NaN,` +
		`"real_time_stddev":7,"max_bytes_used":64,"label":"}{","list":[1,{"real_time":3}]}`
	want := []string{
		"partial no number: x of A\"\\ä", "benchmark=A\"\\ä: real_time 1 s", "benchmark=A\"\\ä: cpu_time 1 s",
		"benchmark=A\"\\ä: max_bytes_used 64 B",
		"benchmark=A\"\\ä: cache misses 5 1", "benchmark=A\"\\ä: real_time_stddev_counter 7 1",
	}
	if diff := cmp.Diff(want, reporttest.Lines(parse(t, document(entry)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOfTwoRunsTheLastCompleteOneCounts(t *testing.T) {
	t.Parallel()
	first, last := capture(t, "agg.json"), capture(t, "reps.json")
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

func TestParserOfGbenchPassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind:   gbench.Kind(),
		Own:    []string{"all.json", "agg.json", "out.json"},
		Others: []string{"{}", "[]", `{"fio version":"fio-3.33"}`, `{"context":{"a":1}}`, `{"benchmarks":[]}`},
		Open:   `{"context":{"num_cpus":2},"benchmarks":[{"name":`,
		Cuts: []reporttest.Cut{
			{File: "all.json", End: "}", NoHeadline: true, Bytes: true},
			{File: "agg.json", End: "}", NoHeadline: true, Bytes: true},
			{File: "out.json", End: "}", NoHeadline: true, Bytes: true},
		},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	reporttest.Fuzz(f, gbench.Kind())
}

func BenchmarkParse(b *testing.B) {
	one := capture(b, "all.json")
	begin, end := strings.Index(one, `"benchmarks": [`)+len(`"benchmarks": [`), strings.LastIndex(one, "]")
	text := one[:begin] + strings.Repeat(one[begin:end]+",", 50) + one[begin:]
	reporttest.Benchmark(b, gbench.Kind(), text)
}
