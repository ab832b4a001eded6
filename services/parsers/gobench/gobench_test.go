package gobench_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/gobench"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
)

func parse(tb testing.TB, text string) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, gobench.Kind(), text)
}

func capture(tb testing.TB, name string) string {
	tb.Helper()
	return reporttest.Capture(tb, name+".txt")
}

// lines returns the state of a report, and a line for each metric.
func lines(r report.Report) []string {
	all := []string{reporttest.State(r)}
	for _, m := range r.Metrics {
		id := strings.TrimSpace(m.Labels["package"] + " " + m.Labels["benchmark"] + " " + m.Labels["procs"])
		line := fmt.Sprintf("%s %s: %.12g %s", id, m.Name, m.Value, m.Unit)
		if m.Headline {
			line += " headline"
		}
		all = append(all, line)
	}
	return all
}

func TestAMetricIsTheMedianOfItsRepetitions(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"one": {"ok", "One 2 sec_per_op: 4.805e-09 s headline"},
		"cpu": {"ok", "One 1 sec_per_op: 1.955e-09 s", "One 2 sec_per_op: 3.055e-09 s"},
		"count3": {
			"ok", "Copy/size=64 2 sec_per_op: 2.459e-08 s", "Copy/size=64 2 bytes_per_sec: 2603210000 B/s",
			"Copy/size=64 2 bytes_per_op: 0 B", "Copy/size=64 2 allocs_per_op: 0 1",
			"Copy/size=4096 2 sec_per_op: 1.008e-07 s", "Copy/size=4096 2 bytes_per_sec: 40655090000 B/s",
			"Copy/size=4096 2 bytes_per_op: 40 B", "Copy/size=4096 2 allocs_per_op: 0 1",
			"Custom 2 sec_per_op: 3.741e-08 s", "Custom 2 p99_sec_per_op: 1.25e-08 s", "Custom 2 pkts_per_s: 10000000 pkts/s",
			"Custom 2 widgets: 3 widgets", "Noisy 2 sec_per_op: 3.9e-07 s",
		},
		"two-packages": {
			"ok", "example.com/b/a Copy/size=64 2 sec_per_op: 1.918e-08 s", "example.com/b/a Copy/size=64 2 bytes_per_sec: 3337680000 B/s",
			"example.com/b/a Copy/size=64 2 bytes_per_op: 0 B", "example.com/b/a Copy/size=64 2 allocs_per_op: 0 1",
			"example.com/b/a Copy/size=4096 2 sec_per_op: 2.13e-07 s", "example.com/b/a Copy/size=4096 2 bytes_per_sec: 19233210000 B/s",
			"example.com/b/a Copy/size=4096 2 bytes_per_op: 40 B", "example.com/b/a Copy/size=4096 2 allocs_per_op: 0 1",
			"example.com/b/a Custom 2 sec_per_op: 7.511e-08 s", "example.com/b/a Custom 2 p99_sec_per_op: 1.25e-08 s",
			"example.com/b/a Custom 2 pkts_per_s: 10000000 pkts/s", "example.com/b/a Custom 2 widgets: 3 widgets",
			"example.com/b/a Noisy 2 sec_per_op: 4.305e-07 s", "example.com/b/c One 2 sec_per_op: 1.5e-09 s",
		},
	} {
		if diff := cmp.Diff(want, lines(parse(t, capture(t, name)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAFailureIsSaidInTheWordsOfTheTool(t *testing.T) {
	t.Parallel()
	const killed = "BenchmarkA-2\t200\t5 ns/op\nsignal: killed\nFAIL\tp\t3.1s\n"
	for text, want := range map[string][]string{
		capture(t, "fails"):  {"failed --- FAIL: BenchmarkBad: f_test.go:4: no such device", "Good 2 sec_per_op: 4.155e-09 s"},
		capture(t, "panics"): {"failed panic: assignment to entry in nil map", "Good 2 sec_per_op: 4.655e-09 s"},
		killed:               {"failed signal: killed", "A 2 sec_per_op: 5e-09 s"},
		"# p\n./a_test.go:3:1: syntax error\nFAIL\tp [build failed]\nFAIL\n": {"failed FAIL p [build failed]"},
		capture(t, "one") + "FAIL\tq [build failed]\nFAIL\n":                 {"failed FAIL q [build failed]", "One 2 sec_per_op: 4.805e-09 s"},
		"PASS\nok  \tp\t0.1s\n":         {"empty no result in the text"},
		"pkg: p\nPASS\nok  \tp\t0.1s\n": {"empty no benchmark was run"},
		"":                              {"empty no result in the text"},
	} {
		if diff := cmp.Diff(want, lines(parse(t, text))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestOfTwoRunsOfAPackageTheLastCompleteOneCounts(t *testing.T) {
	t.Parallel()
	run := func(seconds, end string) string {
		return "goos: linux\npkg: p\ncpu: any\nBenchmarkA-2 \t 200\t" + seconds + " ns/op\n" + end
	}
	const end = "PASS\nok  \tp\t0.1s\n"
	for text, want := range map[string][]string{
		run("1", end) + run("2", end):                         {"ok", "A 2 sec_per_op: 2e-09 s headline"},
		run("1", "") + run("2", end):                          {"ok", "A 2 sec_per_op: 2e-09 s headline"},
		run("1", end) + run("2", ""):                          {"partial neither PASS nor FAIL at the end of p", "A 2 sec_per_op: 1e-09 s"},
		run("1", "FAIL\nFAIL\tp\t1s\nFAIL\n") + run("2", end): {"ok", "A 2 sec_per_op: 2e-09 s headline"},
		run("1", end) + run("2", "FAIL\n"):                    {"failed FAIL", "A 2 sec_per_op: 2e-09 s"},
	} {
		if diff := cmp.Diff(want, lines(parse(t, text))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestUnitsOfOnesOwnAreKept(t *testing.T) {
	t.Parallel()
	text := "BenchmarkX 	 10	 7 ns/op	 8 ns/GC	 2 MB/op	 50 %	 3 a-b	 4 a_b	 1e3 ns/op	 5 sec_per_op\nPASS\n"
	want := []string{
		"ok", "X 1 sec_per_op: 7e-09 s headline", "X 1 sec_per_gc: 8e-09 s", "X 1 bytes_per_op: 2000000 B", "X 1 percent: 50 %",
		"X 1 a_b: 3 a-b", "X 1 a_b_2: 4 a_b", "X 1 sec_per_op_2: 5 sec_per_op",
	}
	if diff := cmp.Diff(want, lines(parse(t, text))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"BenchmarkX-8 \t 10\t 7 ns/op\t NaN ratio\nPASS\n": {"partial no number: NaN ratio of BenchmarkX-8", "X 8 sec_per_op: 7e-09 s"},
		"BenchmarkX-8 \t 10\t +Inf MB/s\nPASS\n":           {"empty no number: +Inf MB/s of BenchmarkX-8"},
		"BenchmarkX-8 \t a log line\nBenchmarkY-8 \t 1\t 7 ns/op\nPASS\n": {
			"partial no result of BenchmarkX-8", "Y 8 sec_per_op: 7e-09 s",
		},
		"BenchmarkX-8 \t 10\t 7 ns/op\nBenchmarkY-8 \t": {"partial no result of BenchmarkY-8", "X 8 sec_per_op: 7e-09 s"},
		"BenchmarkX-8 \t 10\t 7 ns/op\n":                {"partial neither PASS nor FAIL at the end of the output", "X 8 sec_per_op: 7e-09 s"},
	} {
		if diff := cmp.Diff(want, lines(parse(t, text))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestResultsAreKeptUpToALimit(t *testing.T) {
	t.Parallel()
	line := "BenchmarkX" + strings.Repeat("x", 900_000) + " 10 7 ns/op 8 MB/s\n"
	for name, tt := range map[string]struct{ text, want string }{
		"one run":                    {strings.Repeat(line, 6) + "PASS\n", "partial results are left out: there are too many"},
		"many runs, of which one":    {strings.Repeat(line+"PASS\n", 6), "ok"},
		"many runs, of two packages": {"pkg: p\n" + line + "PASS\n" + strings.Repeat("pkg: q\nFAIL\n", 20_000), "failed FAIL"},
	} {
		if r := parse(t, tt.text); reporttest.State(r) != tt.want || len(r.Metrics) != 2 {
			t.Errorf("%s: %s, %d metrics, want %s", name, reporttest.State(r), len(r.Metrics), tt.want)
		}
	}
}

func TestParserOfGobenchPassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind:   gobench.Kind(),
		Own:    []string{"one.txt", "cpu.txt", "count3.txt", "two-packages.txt"},
		Others: []string{"{}", "[]", "Benchmark 1: true\n", "Benchmark                Mode  Cnt  Score   Error  Units\n", "Benchmarking 10 20 30\n", "PASS\n"},
		Cuts: []reporttest.Cut{
			{File: "one.txt", End: "PASS"}, {File: "cpu.txt", End: "PASS"}, {File: "count3.txt", End: "PASS"}, {File: "fails.txt"}, {File: "panics.txt"},
		},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	reporttest.Fuzz(f, gobench.Kind())
}

func BenchmarkParse(b *testing.B) {
	text := strings.Repeat(capture(b, "count3")+strings.Repeat("2026-11-26 12:00:01 INFO some line of a program that logs\n", 20), 500)
	reporttest.Benchmark(b, gobench.Kind(), text)
}
