package report_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/report"
	"github.com/benchmark-ai/bai/client-lib/internal/golden"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/analyst/judge"
)

const hostile = `<script>alert("1")</script>'&` + "\x1b[31m\u202e"

func at(seconds int) *timestamppb.Timestamp {
	return timestamppb.New(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second))
}

func source() report.Source {
	return report.Source{Time: at(7200).AsTime(), Version: "v1.2.0", Server: "bai.example.org:7070"}
}

// metricOf is a metric as the platform returns it.
func metricOf(tb testing.TB, name, unit, direction string, values ...float64) *baiv1.MetricResult {
	tb.Helper()
	j, err := judge.New(judge.Settings{})
	if err != nil {
		tb.Fatal(err)
	}
	s := j.Summarise(values)
	m := &baiv1.MetricResult{
		Metric: name, Unit: unit, Direction: direction, N: int32(s.N), Excluded: int32(s.Excluded), Median: s.Median, Lacking: int32(s.Lacking),
	}
	for i, v := range values {
		m.Values = append(m.Values, &baiv1.RepetitionValue{Repetition: int32(i + 1), Value: v})
	}
	if s.Interval != nil {
		m.Interval = &baiv1.Interval{Low: s.Interval.Low, High: s.Interval.High, Level: s.Interval.Level}
	}
	return m
}

// grid returns cells with all combinations of the numbers below some limits, and metrics.
func grid(tb testing.TB, metrics int, limits ...int) []*baiv1.CellResult {
	tb.Helper()
	cells := []*baiv1.CellResult{{}}
	for i, limit := range limits {
		var more []*baiv1.CellResult
		for _, c := range cells {
			for v := range limit {
				name, value := string(rune('a'+i)), fmt.Sprint(1+v)
				more = append(more, &baiv1.CellResult{
					Name:       strings.TrimPrefix(c.GetName()+","+name+"="+value, ","),
					Parameters: append(c.GetParameters()[:i:i], &baiv1.CellParameter{Name: name, Value: value}),
				})
			}
		}
		cells = more
	}
	for i, c := range cells {
		for m := range metrics {
			values := make([]float64, 6)
			for r := range values {
				values[r] = 100 + float64(40*i%997) + float64(r*(m+1)%7)
			}
			c.Metrics = append(c.GetMetrics(), metricOf(tb, fmt.Sprintf("metric-%d", m), "ms", "lower", values...))
		}
	}
	return cells
}

func machine(fingerprint string) *baiv1.Environment {
	return &baiv1.Environment{
		Fingerprint: fingerprint, Image: "docker.io/library/debian:12",
		Pods: []*baiv1.PodEnvironment{{
			Role: "benchmark", Attempt: 1, PlatformVersion: "v1.2.0", ImageDigest: "sha256:9f86d081",
			Machine: &baiv1.Machine{Node: "node-7", Kernel: "6.8.0", CpuModel: "AMD EPYC 9454", Cpus: 96, Memory: 403 << 30},
		}},
	}
}

// sizes is a set with failures, two environments and what a hostile user writes.
func sizes(t *testing.T) report.SetReport {
	t.Helper()
	failed := func(id string, second int, l *baiv1.Lineage) *baiv1.Run {
		return &baiv1.Run{
			Id: id, CreateTime: at(second), EndTime: at(second + 9), Lineage: l, Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_USER,
			Reason: "NonZeroExit", Message: "exit code 3: " + hostile,
		}
	}
	s := report.SetReport{
		Set: &baiv1.Set{
			Id: "6kq3w8r2v5m1x7d4j9thb0pzcn", Name: "sizes", Owner: "ann", Namespace: "pets", Description: "About " + hostile, Labels: map[string]string{"a": hostile},
			DescriptorFile: "sweep.toml", DescriptorToml: "# " + hostile + "\n[sweep]\n", CellCount: 4, RunCount: 28, Repetitions: 6, Warmup: 1, Order: "interleaved",
			State: baiv1.SetState_SET_STATE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_FAILED, Submitted: 28, Succeeded: 25, Failed: 3, CreateTime: at(0), EndTime: at(3600),
			Failures: []*baiv1.SetFailure{{RunId: "r2", Cell: "a=1,b=1"}, {Cell: "a=2,b=2", Message: "the quota is used up"}},
		},
		Cells: grid(t, 1, 2, 2),
		Runs: []*baiv1.Run{
			failed("r2", 20, &baiv1.Lineage{Cell: "a=1,b=1", Repetition: 2}), failed("r1", 10, &baiv1.Lineage{Cell: "a=2,b=1", Repetition: 1, Warmup: true}),
			{Id: "r3", Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED},
		},
		Environments: []report.RunEnvironment{{Run: "r3", Environment: machine("f1")}, {Run: "r9", Environment: machine("f1")}},
		Source:       source(),
	}
	for i, c := range s.Cells {
		c.Incomplete = int32(i % 2)
		c.Metrics = append(c.GetMetrics(), metricOf(t, hostile, hostile, "", 1, 2, float64(3+i)), metricOf(t, "system.cpu", "cores", "", 1.5))
	}
	return s
}

func compress() report.RunReport {
	return report.RunReport{
		Run: &baiv1.Run{
			Id: "01kdyt1q880000000000000001", Name: "hello", Owner: "ann", Namespace: "pets", Description: "About " + hostile, DescriptorFile: "hello.toml",
			DescriptorToml: "[info]\n# " + hostile + "\n", Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_USER,
			Reason: "NonZeroExit", Message: "exit code 3 " + hostile, ExitCode: new(int32(3)), Attempt: 1, CreateTime: at(0), StartTime: at(2), EndTime: at(65),
			Lineage: &baiv1.Lineage{SetId: "6kq3w8r2v5m1x7d4j9thb0pzcn", Cell: "size=1K", Repetition: 2}, Overrides: []*baiv1.Override{{Path: "env.vars.X", Value: hostile}},
			Completeness: &baiv1.Completeness{Complete: true, Samples: 4, Lines: 2, Notes: []string{hostile}},
		},
		Summaries: &baiv1.GetSummariesResponse{Complete: true},
		Metrics:   printer.Table{Columns: []printer.Column{{Title: "METRIC"}, {Title: "N", Right: true}}, Rows: [][]string{{hostile, "6"}}},
		System:    printer.Table{Columns: []printer.Column{{Title: "METRIC"}, {Title: "N", Right: true}}, Rows: [][]string{{"system.cpu", "60"}}},
		Changes: []*baiv1.Change{
			{Revision: 1, Time: at(0), Phase: baiv1.Phase_PHASE_SUBMITTED, Message: "submitted by ann", Kind: "bai.submitted"},
			{Revision: 2, Time: at(2), Attempt: 1, Phase: baiv1.Phase_PHASE_RUNNING, Message: hostile, Kind: "bai.status"},
			{Revision: 3, Time: at(65), Attempt: 1, Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_FAILED, Reason: "NonZeroExit", Message: "exit code 3", Kind: "bai.finished"},
		},
		Lines: []*baiv1.LogLine{
			{Origin: &baiv1.Origin{Role: "benchmark"}, Time: at(3), Text: hostile}, {Origin: &baiv1.Origin{Role: "benchmark"}, Time: at(4), Stderr: true, Text: strings.Repeat("é", 1001)},
		},
		Artifacts:   []*baiv1.Artifact{{Name: "1/benchmark-0/out.json", Size: 1234, Sha256: "9f86"}},
		Environment: machine("f1"),
		Source:      source(),
	}
}

// pages are a report of each kind.
func pages(t *testing.T) map[string]string {
	t.Helper()
	set, err := sizes(t).HTML()
	if err != nil {
		t.Fatal(err)
	}
	run, err := compress().HTML()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"set": set, "run": run}
}

func TestReports(t *testing.T) {
	for name, text := range pages(t) {
		golden.Check(t, filepath.Join("testdata", name+".html"), text)
	}
}

func TestWhatUsersWroteIsEscaped(t *testing.T) {
	for name, text := range pages(t) {
		if strings.Contains(strings.ToLower(text), "<script") {
			t.Errorf("%s: there is a script", name)
		}
		if strings.ContainsAny(text, "\x1b\u202e") {
			t.Errorf("%s: there are control characters", name)
		}
		if !strings.Contains(text, "&lt;script&gt;") {
			t.Errorf("%s: what the user wrote is missing", name)
		}
	}
}

func TestAReportNeedsNoOtherFile(t *testing.T) {
	for name, text := range pages(t) {
		for _, bad := range []string{"<link", "<img", "<iframe", "@import", "url(", " src=", " style=", " onload", " onclick"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s: it has %q", name, bad)
			}
		}
		for _, m := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(text, -1) {
			if !strings.HasPrefix(m[1], "#s") {
				t.Errorf("%s: a link to %q", name, m[1])
			}
		}
	}
}

func TestAReportCanBeReadByAScreenReader(t *testing.T) {
	count := func(text, what string) int { return strings.Count(text, what) }
	for name, text := range pages(t) {
		if n := count(text, "<h1"); n != 1 {
			t.Errorf("%s: %d headings of the first order", name, n)
		}
		if tables, captions := count(text, "<table"), count(text, "<caption>"); tables != captions || tables == 0 || strings.Contains(text, "<caption></caption>") {
			t.Errorf("%s: %d tables, %d captions", name, tables, captions)
		}
		if headers, scopes := len(regexp.MustCompile(`<th[ >]`).FindAllString(text, -1)), count(text, `<th scope="`); headers != scopes {
			t.Errorf("%s: %d headers of rows and columns, %d with a scope", name, headers, scopes)
		}
		if plots, titles := count(text, `role="img"`), count(text, "<desc>"); plots != titles {
			t.Errorf("%s: %d plots, %d with a description", name, plots, titles)
		}
		if sections, headings := count(text, "<section aria-labelledby="), count(text, `<h2 id="s`); sections != headings || !strings.Contains(text, `<html lang="en">`) {
			t.Errorf("%s: %d sections, %d with a heading", name, sections, headings)
		}
	}
}

// wordsOf is the text of a page with single blanks.
func wordsOf(page string) string {
	_, page, _ = strings.Cut(page, "</style>")
	return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, " ")), " ")
}

func TestAReportOnASetSaysWhatHappened(t *testing.T) {
	text := wordsOf(pages(t)["set"])
	for _, want := range []string{
		"Each cell 6 repetitions and 1 warm-up run", "Runs 28 of 28 runs ended, 3 failed", "Took 1h00m", "Image digest sha256:9f86d081", "Machine AMD EPYC 9454",
		"a=1,b=1 102.5 100 105 6 1 ", "a=1,b=2 142.5 140 145 6 2 ", "Runs that failed: 3 Run Cell Repetition Ended Why r1 a=2,b=1 warm-up 1 2026-01-02 03:00:19 UTC NonZeroExit (user): exit code 3",
		"refused a=2,b=2 the quota is used up", "run r9 has the same fingerprint", "2 repetitions with samples that never came", "Measurements of the platform system.cpu (cores) Cell Median",
		"an interval needs 6 repetitions: 3 are lacking",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

func TestTiesShareAPlace(t *testing.T) {
	s := sizes(t)
	s.Cells[1].Metrics[0] = metricOf(t, "metric-0", "ms", "lower", 100, 101, 102, 103, 104, 105)
	text, err := s.HTML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a=1,b=1 102.5 100 105 6 1 (tie of 2)", "a=1,b=2 102.5 100 105 6 1 (tie of 2)", "a=2,b=1 182.5 180 185 6 3 "} {
		if !strings.Contains(wordsOf(text), want) {
			t.Errorf("the report lacks %q:\n%s", want, wordsOf(text))
		}
	}
}

func TestDifferentMachinesAreShownApart(t *testing.T) {
	s := sizes(t)
	s.Environments[1].Environment.Fingerprint = "f2"
	text, err := s.HTML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Where run r3 ran", "Where run r9 ran", "the fingerprints of the runs differ"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
}

func TestASetWithoutResultsHasAReport(t *testing.T) {
	text, err := report.SetReport{Set: &baiv1.Set{Id: "s1", State: baiv1.SetState_SET_STATE_RUNNING}, Source: source()}.HTML()
	if err != nil || !strings.Contains(text, "no repetition has results yet") {
		t.Errorf("error %v, report:\n%s", err, text)
	}
}

func TestARunWithoutAnythingHasAReport(t *testing.T) {
	text, err := report.RunReport{Run: &baiv1.Run{Id: "r1"}, Source: source()}.HTML()
	for _, want := range []string{"the run has no samples", "nothing is stored about the steps of the run", "the run has no lines"} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("error %v, lacks %q", err, want)
		}
	}
}

func TestALongLogIsCut(t *testing.T) {
	r := compress()
	line := &baiv1.LogLine{Origin: &baiv1.Origin{Role: "worker"}, Text: strings.Repeat("x", 5000)}
	for range 3000 {
		r.Lines = append(r.Lines, line)
	}
	text, err := r.HTML()
	if err != nil || len(text) > 2<<20 || !strings.Contains(text, "the last 1000 lines") {
		t.Errorf("error %v, %d bytes", err, len(text))
	}
}

// thousand is a set of 1,000 cells with 6 repetitions each and 10 metrics.
func thousand(tb testing.TB) report.SetReport {
	tb.Helper()
	return report.SetReport{Set: &baiv1.Set{Id: "s1", CellCount: 1000, RunCount: 6000, Repetitions: 6}, Cells: grid(tb, 10, 10, 10, 10), Source: source()}
}

func TestAReportOfAThousandCellsHasAtMost5MB(t *testing.T) {
	text, err := thousand(t).HTML()
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 5e6 || len(text) < 1e6 {
		t.Errorf("%d bytes", len(text))
	}
	if n := strings.Count(text, `<svg `); n < 50 {
		t.Errorf("%d plots", n)
	}
}

func TestManyMetricsHavePlotsOnlyUpToASize(t *testing.T) {
	s := report.SetReport{Set: &baiv1.Set{Id: "s1"}, Cells: grid(t, 40, 10, 10, 10), Source: source()}
	text, err := s.HTML()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "no plot: this report has many already") {
		t.Error("each metric has plots")
	}
	if strings.Contains(text, "NaN") || len(text) > 12e6 {
		t.Errorf("%d bytes", len(text))
	}
}

// BenchmarkReport writes a report of 1,000 cells with 6 repetitions and 10 metrics. The bar
// is 2 s.
func BenchmarkReport(b *testing.B) {
	s := thousand(b)
	for b.Loop() {
		text, err := s.HTML()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(text)), "bytes")
	}
}
