package jmh_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/jmh"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
)

func parse(tb testing.TB, text string) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, jmh.Kind(), text)
}

func capture(tb testing.TB, name string) string {
	tb.Helper()
	return reporttest.Capture(tb, name)
}

// lines returns the state of a report, and a line for each of its metrics of some names.
func lines(r report.Report, names ...string) []string {
	all := []string{reporttest.State(r)}
	for _, m := range r.Metrics {
		if len(names) > 0 && !slices.Contains(names, m.Name) {
			continue
		}
		line := fmt.Sprintf("%s %s", m.Name, m.Labels["benchmark"])
		for _, key := range []string{"size", "threads", "percentile", "param_threads"} {
			if v := m.Labels[key]; v != "" {
				line += " " + key + "=" + v
			}
		}
		line = strings.TrimSpace(fmt.Sprintf("%s %.12g %s %s", line, m.Value, m.Unit, m.Direction))
		if m.Headline {
			line += " headline"
		}
		all = append(all, line)
	}
	return all
}

func TestTheScoreIsThatOfTheTool(t *testing.T) {
	t.Parallel()
	r := parse(t, capture(t, "throughput.json"))
	want := []string{ // 2.2193003716021935 ops/us, error 30.30091530364816
		"ok",
		"throughput sample.Copy.copy size=16 2219300.3716 op/s higher headline",
		"throughput_error sample.Copy.copy size=16 30300915.3036 op/s",
	}
	if diff := cmp.Diff(want, lines(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.Version != "1.37" {
		t.Errorf("version %q", r.Version)
	}
}

func TestEachModeHasItsMetric(t *testing.T) {
	t.Parallel()
	r := parse(t, capture(t, "modes.json"))
	want := []string{
		"ok",
		"throughput sample.Copy.copy size=16 286211.759412 op/s higher",        // 0.28621175941162125 ops/us
		"throughput sample.Copy.copy size=4096 506727.50315 op/s higher",       // 0.5067275031503594 ops/us
		"average_time sample.Copy.cloneTime size=16 1.43251854169e-06 s lower", // 1432.518541688776 ns/op
		"average_time sample.Copy.cloneTime size=4096 8.0401919299e-06 s lower",
		"average_time sample.Copy.fails size=16 1.45371080327e-06 s lower",
		"sample_time sample.Copy.cloneTime size=16 7.20855213675e-07 s lower",
		"sample_time sample.Copy.cloneTime size=4096 0.000122683907913 s lower",
		"single_shot_time sample.Copy.once size=16 4.882e-06 s lower", // 0.004882 ms/op
		"single_shot_time sample.Copy.once size=4096 7.126e-06 s lower",
	}
	if diff := cmp.Diff(want, lines(r, "throughput", "average_time", "sample_time", "single_shot_time")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSecondaryResultsHaveTheirNamesAndUnits(t *testing.T) {
	t.Parallel()
	got := lines(parse(t, capture(t, "modes.json")), "gc_alloc_rate", "gc_alloc_rate_norm", "gc_count", "gc_time")
	want := []string{
		"ok",
		"gc_alloc_rate sample.Copy.copy size=16 8621352.58154 B/s", // 8.221962529701212 MB/sec
		"gc_alloc_rate_norm sample.Copy.copy size=16 32.0544008796 B/op lower",
		"gc_count sample.Copy.copy size=16 1 1",
		"gc_time sample.Copy.copy size=16 0.276 s", // 276 ms
	}
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOfSampledTimesPercentilesAreKept(t *testing.T) {
	t.Parallel()
	got := lines(parse(t, capture(t, "modes.json")), "sample_time_percentile")
	want := []string{
		"ok",
		"sample_time_percentile sample.Copy.cloneTime size=16 percentile=0.0 5e-08 s lower",
		"sample_time_percentile sample.Copy.cloneTime size=16 percentile=50.0 7e-08 s lower",
		"sample_time_percentile sample.Copy.cloneTime size=16 percentile=90.0 1.21e-07 s lower",
		"sample_time_percentile sample.Copy.cloneTime size=16 percentile=95.0 1.6e-07 s lower",
		"sample_time_percentile sample.Copy.cloneTime size=16 percentile=99.0 3.2049e-07 s lower",
	}
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(got) != 21 {
		t.Errorf("%d percentiles, want 10 for each of 2", len(got)-1)
	}
}

// one is a result file with one benchmark.
func one(mode, score, unit, more string) string {
	const form = `[{"benchmark": "b", "mode": %q, "threads": 1, "primaryMetric": {"score": %s, "scoreError": "NaN", "scoreUnit": %q}%s}]`
	return fmt.Sprintf(form, mode, score, unit, more)
}

func TestUnitsAreConverted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ mode, unit, want string }{
		{"thrpt", "ops/ns", "throughput b 3000000000 op/s higher headline"},
		{"thrpt", "ops/ms", "throughput b 3000 op/s higher headline"},
		{"thrpt", "ops/s", "throughput b 3 op/s higher headline"},
		{"thrpt", "ops/min", "throughput b 0.05 op/s higher headline"},
		{"avgt", "s/op", "average_time b 3 s lower headline"},
		{"avgt", "us/op", "average_time b 3e-06 s lower headline"},
		{"ss", "hr/op", "single_shot_time b 10800 s lower headline"},
		{"sample", "day/op", "sample_time b 259200 s lower headline"},
	} {
		if diff := cmp.Diff([]string{"ok", tt.want}, lines(parse(t, one(tt.mode, "3", tt.unit, "")))); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.mode, tt.unit, diff)
		}
	}
}

func TestThreadsAndOddParametersAreLabels(t *testing.T) {
	t.Parallel()
	text := strings.Replace(one("avgt", "1", "s/op", `, "params": {"threads": "x", "size": "7"}`), `"threads": 1`, `"threads": 4`, 1)
	want := []string{"ok", "average_time b size=7 threads=4 param_threads=x 1 s lower headline"}
	if diff := cmp.Diff(want, lines(parse(t, text))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSecondaryResultsOfOlderVersionsAndOfGroups(t *testing.T) {
	t.Parallel()
	text := one("thrpt", "3", "ops/s", `, "secondaryMetrics": {"·gc.alloc.rate.norm": {"score": 16, "scoreUnit": "B/op"},
		"get": {"score": 2, "scoreUnit": "ops/us"}, "gc.time": {"score": "NaN", "scoreUnit": "ms"},
		"throughput": {"score": 1, "scoreUnit": "ops/s"}, "events": {"score": 7, "scoreUnit": "#"}}`)
	want := []string{
		`partial throughput in "ops/s" was left out`, "throughput b 3 op/s higher headline", "gc_alloc_rate_norm b 16 B/op lower",
		"get b 2000000 op/s", "events b 7 1",
	}
	if diff := cmp.Diff(want, lines(parse(t, text))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFailuresAndWhatIsMissingAreSaid(t *testing.T) {
	t.Parallel()
	modes := capture(t, "modes.json")
	for name, tt := range map[string]struct{ text, want string }{
		"fail on error":             {capture(t, "fail-on-error.txt"), "failed java.lang.IllegalStateException: too large"},
		"the only benchmark throws": {capture(t, "none-left.txt"), "failed java.lang.IllegalStateException: too large"},
		"one of several throws": {
			capture(t, "none-left.txt") + modes,
			"partial a benchmark failed: java.lang.IllegalStateException: too large",
		},
		"nothing matches": {
			"No matching benchmarks. Miss-spelled regexp?\nUse EXTRA verbose mode to debug the pattern matching.\n",
			"failed No matching benchmarks. Miss-spelled regexp?",
		},
		"locked": {
			"ERROR: org.openjdk.jmh.runner.RunnerException: ERROR: Unable to acquire the JMH lock\n",
			"failed ERROR: org.openjdk.jmh.runner.RunnerException: ERROR: Unable to acquire the JMH lock",
		},
		"no result":                  {"[\n]\n", "empty no result in the text"},
		"nothing":                    {"", "empty no result in the text"},
		"another text":               {"hello [1] {}\n", "empty no result in the text"},
		"JSON of another tool":       {`[{"benchmark": "x"}]`, "empty no result in the text"},
		"the file ends early":        {modes[:len(modes)/2], "partial the JSON ends early"},
		"it ends in the first":       {modes[:1500], "empty the JSON ends early"},
		"a score that is no number":  {one("avgt", `"NaN"`, "s/op", ""), "empty b has no score"},
		"a mode of no version":       {one("fast", "1", "s/op", ""), `empty b has the mode "fast" and the unit "s/op"`},
		"a unit of another mode":     {one("thrpt", "1", "s/op", ""), `empty b has the mode "thrpt" and the unit "s/op"`},
		"a unit of no format":        {one("avgt", "1", "parsec/op", ""), `empty b has the mode "avgt" and the unit "parsec/op"`},
		"a run that failed, then ok": {capture(t, "none-left.txt") + "# Run progress: 0.00% complete, ETA 00:00:02\n" + modes, "ok"},
	} {
		if got := reporttest.State(parse(t, tt.text)); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestTheLastResultsCount(t *testing.T) {
	t.Parallel()
	first, second := capture(t, "throughput.json"), one("thrpt", "5", "ops/s", "")
	if got := lines(parse(t, first+"\n"+second)); got[1] != "throughput b 5 op/s higher headline" {
		t.Errorf("%s, want the second", got)
	}
	got := lines(parse(t, second+"\n"+first[:len(first)-20]))
	if got[0] != "partial the JSON ends early" || got[1] != "throughput b 5 op/s higher headline" {
		t.Errorf("%s, want the first", got)
	}
}

func TestParserOfJMHPassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind:   jmh.Kind(),
		Own:    []string{"throughput.json", "modes.json", "none-left.txt", "fail-on-error.txt"},
		Others: []string{"{}", "[]", `{"benchmarks": [{"name": "x"}]}`, "goos: linux\n"},
		Open:   `[{"benchmark": "b", "mode": "thrpt", "primaryMetric": {`,
		Cuts:   []reporttest.Cut{{File: "throughput.json", End: "]", Bytes: true}, {File: "modes.json", End: "]", Bytes: true}},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	reporttest.Fuzz(f, jmh.Kind(), one("avgt", "1", "s/op", `, "params": {"a": "b"}, "secondaryMetrics": {"get": {"score": 1, "scoreUnit": "ops/s"}}`))
}

func BenchmarkParse(b *testing.B) {
	var results []json.RawMessage
	if err := json.Unmarshal([]byte(capture(b, "modes.json")), &results); err != nil {
		b.Fatal(err)
	}
	text, err := json.MarshalIndent(slices.Repeat(results, 20), "", "    ")
	if err != nil {
		b.Fatal(err)
	}
	reporttest.Benchmark(b, jmh.Kind(), string(text))
}
