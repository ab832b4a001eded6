package bmf_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/bmf"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
)

func parse(tb testing.TB, text string) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, bmf.Kind(), text)
}

func example(tb testing.TB) string {
	tb.Helper()
	return reporttest.Capture(tb, "example.json")
}

// lines returns the state of a report, and a line for each of its metrics.
func lines(r report.Report) []string {
	all := []string{reporttest.State(r)}
	for _, m := range r.Metrics {
		words := []any{m.Name, m.Labels["benchmark"], m.Labels["bound"], fmt.Sprintf("%.12g", m.Value), m.Unit, m.Direction}
		line := strings.Join(strings.Fields(fmt.Sprintln(words...)), " ")
		if m.Headline {
			line += " headline"
		}
		all = append(all, line)
	}
	return all
}

func TestMeasuresOfBencherHaveItsUnits(t *testing.T) {
	t.Parallel()
	want := []string{
		"ok",
		"latency benchmark_name 8.8e-08 s lower headline",
		"latency benchmark_name lower 8.742e-08 s lower",
		"latency benchmark_name upper 8.888e-08 s lower",
		"throughput benchmark_name 5.55 op/s higher headline",
		"throughput benchmark_name lower 3.14 op/s higher",
		"throughput benchmark_name upper 6.3 op/s higher",
		"build_time /bin/sh -c ./my_build_script.sh 87 s lower headline",
		"file_size my_binary 42 B lower headline",
	}
	if diff := cmp.Diff(want, lines(parse(t, example(t)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOtherMeasuresKeepTheirNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`{"a": {"Max Memory": {"value": 3}}}`:                                    {"ok", "max_memory a 3 1 headline"},
		`{"a": {"score": {"value": 3}, "instructions": {"value": 4}}}`:           {"ok", "score a 3 1", "instructions a 4 1 lower headline"},
		`{"a": {"latency": {"value": 1}}, "b": {"latency": {"value": 2e9}}}`:     {"ok", "latency a 1e-09 s lower", "latency b 2 s lower"},
		`{"a": {"latency": {"value": 1}}, "a": {"latency": {"value": 2}}}`:       {"ok", "latency a 2e-09 s lower headline"},
		`{"a": {"latency": {"value": 1, "unit": "ns", "more": 4}}, "empty": {}}`: {"ok", "latency a 1e-09 s lower headline"},
		`{"": {"latency": {"value": 1}}, "a": {"latency": {"value": 2}}}`:        {"ok", "latency 1e-09 s lower", "latency a 2e-09 s lower"},
		`{"a": {"--": {"value": 1}}}`:                                            {"ok", "measure a 1 1 headline"},
	} {
		if diff := cmp.Diff(want, lines(parse(t, text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"a value in a string":    {`{"a": {"x": {"value": "3"}, "y": {"value": 1}}}`, `partial value of x of a is no number: "3"`},
		"no number":              {`{"a": {"x": {"value": null}}}`, "empty no result in the text"},
		"a number too large":     {`{"a": {"x": {"value": 1e999}, "y": {"value": 1}}}`, `partial value of x of a is no number: 1e999`},
		"values on other levels": {`{"a": {"x": {"value": 1}}, "b": 2}`, "empty no result in the text"},
		"lists":                  {`{"a": [{"value": 1}]}`, "empty no result in the text"},
		"another text":           {"hello {x\n", "empty no result in the text"},
		"nothing":                {"", "empty no result in the text"},
		"JSON that ends early":   {example(t)[:200], "partial the JSON ends early"},
		"it ends at once":        {example(t)[:30], "empty the JSON ends early"},
	} {
		if got := lines(parse(t, tt.text))[0]; got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestTheLastDocumentCounts(t *testing.T) {
	t.Parallel()
	second := `{"a": {"latency": {"value": 1}}}`
	got := lines(parse(t, "warning: [x]\n"+example(t)+"between\n"+second+"\nbye"))
	if len(got) != 2 || got[1] != "latency a 1e-09 s lower headline" {
		t.Errorf("%s, want the second", got)
	}
	got = lines(parse(t, second+"\n"+example(t)[:100]))
	if got[0] != "partial the JSON ends early" || !strings.HasPrefix(got[1], "latency a 1e-09") {
		t.Errorf("%s, want the first", got)
	}
}

func TestOnlyTheFormatLooksLikeIt(t *testing.T) {
	t.Parallel()
	for _, text := range []string{example(t), "\uFEFF" + example(t), example(t)[:150], `{"a": {"b": {"value": 1}}}`} {
		if !bmf.Kind().Looks([]byte(text)) {
			t.Errorf("%.60q does not look like it", text)
		}
	}
	for _, text := range []string{
		"", "{}", "[]", `{"a": 1}`, `{"a": {"b": {"value": 1, "x": 2}}}`, `{"metrics": {"x": {"value": 1, "min": 2}}}`, "x " + example(t),
		`{"a": {"b": {`,
	} {
		if bmf.Kind().Looks([]byte(text)) {
			t.Errorf("%.60q looks like it", text)
		}
	}
}

func TestParserOfBmfPassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind: bmf.Kind(),
		Open: `{"a": {"latency": {"value": `,
		Cuts: []reporttest.Cut{{File: "example.json", End: "}", NoHeadline: true, Bytes: true}},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	reporttest.Fuzz(f, bmf.Kind(), `{"a": {"Max Memory": {"value": 3}, "--": {"value": "1", "lower_value": -1e300}}}{"b":[`)
}

func BenchmarkParse(b *testing.B) {
	var text bytes.Buffer
	text.WriteString("{\n")
	for i := range 10_000 {
		fmt.Fprintf(&text, "  \"package::benchmark_%d\": {\n    \"latency\": {\n      \"value\": %d.5,\n", i, i)
		text.WriteString("      \"lower_value\": 87.42,\n      \"upper_value\": 88.88\n    }\n  },\n")
	}
	text.WriteString("  \"last\": {}\n}\n")
	reporttest.Benchmark(b, bmf.Kind(), text.String())
}
