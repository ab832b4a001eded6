package k6_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/k6"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
)

func parse(tb testing.TB, text string) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, k6.Kind(), text)
}

func capture(tb testing.TB, name string) string {
	tb.Helper()
	return reporttest.Capture(tb, name)
}

// lines returns the state of a report, and a line for each of its metrics that pick chooses.
func lines(r report.Report, pick func(report.Metric) bool) []string {
	all := []string{reporttest.State(r)}
	for _, m := range r.Metrics {
		if !pick(m) {
			continue
		}
		labels := ""
		for _, key := range []string{"tags", "stat"} {
			if v := m.Labels[key]; v != "" {
				labels += " " + v
			}
		}
		all = append(all, fmt.Sprintf("%s%s %.10g %s", m.Name, labels, m.Value, strings.TrimSpace(m.Unit+" "+string(m.Direction))))
	}
	return all
}

func named(names ...string) func(report.Metric) bool {
	return func(m report.Metric) bool { return slices.Contains(names, m.Name) }
}

func headlines(m report.Metric) bool { return m.Headline }

func TestHeadlinesAreTimeAndRateOfRequests(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"summary-export.json":   {"ok", "http_req_duration p(95) 0.0910625 s lower", "http_reqs_rate 33.85891 op/s higher"},
		"handle-summary.json":   {"ok", "http_req_duration p(95) 0.0910625 s lower", "http_reqs_rate 33.85891 op/s higher"},
		"machine-readable.json": {"ok", "http_req_duration p(95) 0.0910625 s lower", "http_reqs_rate 33.85873126 op/s higher"},
		"text-0.49.txt":         {"ok", "http_req_duration p(95) 0.09106 s lower", "http_reqs_rate 33.85891 op/s higher"},
		"text-1.5.txt":          {"ok", "http_req_duration p(95) 0.09106 s lower", "http_reqs_rate 33.85891 op/s higher"},
	} {
		if diff := cmp.Diff(want, lines(parse(t, capture(t, name)), headlines)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestEveryFormHasTheSameMetrics(t *testing.T) {
	t.Parallel()
	want := lines(parse(t, capture(t, "handle-summary.json")), func(report.Metric) bool { return true })
	// Of a trend of one's own without a unit, --summary-export says the same as of one that is a time: here it is none.
	got := lines(parse(t, capture(t, "summary-export.json")), func(report.Metric) bool { return true })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("--summary-export (-want +got):\n%s", diff)
	}
}

func TestUnitsAreBaseUnits(t *testing.T) {
	t.Parallel()
	pick := named(
		"data_sent", "data_sent_rate", "checks", "checks_passes", "checks_fails", "http_req_failed", "vus", "queue_length", "http_req_blocked",
	)
	want := []string{
		"ok", "checks 0.9911591356 ratio higher", "checks_passes 2018 1", "checks_fails 18 1", "data_sent 121000 B", "data_sent_rate 4000 B/s",
		"http_req_blocked avg 5.2e-05 s lower", "http_req_blocked min 1e-06 s lower", "http_req_blocked med 4e-06 s lower",
		"http_req_blocked max 0.0125 s lower", "http_req_blocked p(90) 9e-06 s lower", "http_req_blocked p(95) 1.1e-05 s lower",
		"http_req_failed 0.00884086444 ratio lower",
		"queue_length avg 7.5 1", "queue_length min 1 1", "queue_length med 7 1", "queue_length max 20 1", "queue_length p(90) 14 1",
		"queue_length p(95) 16 1",
		"vus value 35 1", "vus min 35 1", "vus max 35 1",
	}
	if diff := cmp.Diff(want, lines(parse(t, capture(t, "text-0.49.txt")), pick)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestThresholdsThatWereCrossedAreAResult(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"summary-export.json", "handle-summary.json", "text-0.49.txt", "text-1.5.txt"} {
		got := lines(parse(t, capture(t, name)), named("thresholds_failed"))
		if diff := cmp.Diff([]string{"ok", "thresholds_failed 1 1 lower"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTestsWithoutRequestsHaveHeadlinesOfIterations(t *testing.T) {
	t.Parallel()
	text := `{"metrics": {"iteration_duration": {"avg": 2, "max": 3}, "iterations": {"count": 10, "rate": 5},
		"my_wait": {"type": "trend", "contains": "time", "values": {"avg": 1}}}}`
	want := []string{"ok", "iteration_duration avg 0.002 s lower", "iterations_rate 5 op/s higher"}
	if diff := cmp.Diff(want, lines(parse(t, text), headlines)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ok", "my_wait avg 0.001 s"}, lines(parse(t, text), named("my_wait"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLongTimesAndOtherUnitsOfTimeAreRead(t *testing.T) {
	t.Parallel()
	text := strings.Replace(capture(t, "text-0.49.txt"), "p(95)=91.06ms\n", "p(95)=1h1m30s\n", 1)
	if got := lines(parse(t, text), headlines); got[1] != "http_req_duration p(95) 3690 s lower" {
		t.Errorf("%s, want 3690 s", got)
	}
}

func TestFailuresAndWhatIsMissingAreSaid(t *testing.T) {
	t.Parallel()
	full := capture(t, "text-1.5.txt")
	before, _, _ := strings.Cut(full, "    NETWORK\n")
	for name, tt := range map[string]struct{ text, want string }{
		"a script that does not load": {
			capture(t, "error.txt"),
			`failed GoError: the moduleSpecifier "./helpers.js" couldn't be found on local disk.`,
		},
		"an error of a terminal":    {"ERRO[0000] could not initialize 'x.js'\n", "failed could not initialize 'x.js'"},
		"a summary that ends early": {before, "partial the summary has no data_sent"},
		"another text":              {"hello\n", "empty no result in the text"},
		"nothing":                   {"", "empty no result in the text"},
		"JSON that ends early":      {capture(t, "summary-export.json")[:3000], "empty the JSON ends early"},
		"JSON of another tool":      {`{"metrics": {"a": {"b": 1}}}`, "empty no result in the text"},
		"a unit of no format":       {"     iterations.....: 3 XB 4 XB/s\n", "empty no result in the text"},
		"aborted": {
			full + "time=\"x\" level=error msg=\"test run was aborted because k6 received a 'interrupt' signal\"\n",
			"partial test run was aborted because k6 received a 'interrupt' signal",
		},
		"two metrics of one name": {
			`{"metrics": {"iterations": {"count": 3, "rate": 1}, "iterations_rate": {"type": "trend", "values": {"avg": 1}}}}`,
			"partial iterations_rate was left out: k6 has another metric of this name",
		},
	} {
		if got := reporttest.State(parse(t, tt.text)); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestTheLastCompleteRunCounts(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"text-0.49.txt", "text-1.5.txt", "summary-export.json"} {
		first := capture(t, name)
		second := strings.NewReplacer("33.85891", "50.5").Replace(first)
		if got := lines(parse(t, first+"\n"+second), headlines); got[0] != "ok" || got[2] != "http_reqs_rate 50.5 op/s higher" {
			t.Errorf("%s: %s, want the second run", name, got)
		}
		if got := lines(parse(t, first+"\n"+second), named("thresholds_failed")); got[1] != "thresholds_failed 1 1 lower" {
			t.Errorf("%s: %s, want the thresholds of one run", name, got)
		}
		cut := second[:strings.Index(second, "50.5")]
		got := lines(parse(t, first+"\n"+cut), headlines)
		if !strings.HasPrefix(got[0], "partial ") || got[2] != "http_reqs_rate 33.85891 op/s higher" {
			t.Errorf("%s: %s, want the first run, and what is missing", name, got)
		}
	}
}

func TestColorsAreSkipped(t *testing.T) {
	t.Parallel()
	plain := capture(t, "text-1.5.txt")
	colored := strings.NewReplacer("95)=", "95)=\x1b[36m", "...: ", "...\x1b[0;37;2m:\x1b[0m ", "✗ '", "\x1b[31m✗\x1b[0m '").Replace(plain)
	if diff := cmp.Diff(parse(t, plain), parse(t, colored)); diff != "" {
		t.Errorf("(-plain +colored):\n%s", diff)
	}
}

func TestTextAroundJSONIsSkipped(t *testing.T) {
	t.Parallel()
	text := "time=x level=warning msg=\"{\"\n[ 3] {not json}\n" + capture(t, "handle-summary.json") + "\nbye {\n}\n"
	if got := lines(parse(t, text), headlines); got[0] != "ok" || len(got) != 3 {
		t.Errorf("%s, want two headlines", got)
	}
}

func TestParserOfK6PassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind:   k6.Kind(),
		Own:    []string{"summary-export.json", "handle-summary.json", "machine-readable.json", "text-0.49.txt", "text-1.5.txt"},
		Others: []string{"{}", "[]", `{"metrics": {}}`, "goos: linux\n", `[{"benchmark": "x"}]`, capture(t, "error.txt")},
		Open:   `{"metrics": {"http_reqs": {"count": `,
		Cuts: []reporttest.Cut{
			{File: "text-0.49.txt", Bytes: true}, {File: "text-1.5.txt", Bytes: true}, {File: "summary-export.json", End: "}", Bytes: true},
		},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	reporttest.Fuzz(f, k6.Kind())
}

func BenchmarkParse(b *testing.B) {
	document := capture(b, "summary-export.json")
	submetrics := document[strings.Index(document, `        "http_req_blocked"`):strings.Index(document, `        "http_req_connecting"`)]
	for i := range 100 {
		one := strings.Replace(submetrics, "blocked", fmt.Sprintf("duration{name:%d}", i), 1)
		document = strings.Replace(document, submetrics, one+submetrics, 1)
	}
	line := "time=\"2026-01-15T10:00:03Z\" level=info msg=\"one of many lines of a script\" source=console\n"
	for name, text := range map[string]string{
		"document": document,
		"log":      strings.Repeat(line, 200_000) + capture(b, "text-1.5.txt"),
	} {
		b.Run(name, func(b *testing.B) {
			reporttest.Benchmark(b, k6.Kind(), text)
		})
	}
}
