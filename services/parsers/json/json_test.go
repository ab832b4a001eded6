package json_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/json"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
)

func parse(tb testing.TB, text string, selections ...report.Selection) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, json.Kind(), text, selections...)
}

func capture(tb testing.TB, name string) string {
	tb.Helper()
	return reporttest.Capture(tb, name)
}

// lines returns the state of a report, and a line for each of its metrics.
func lines(r report.Report) []string {
	all := []string{reporttest.State(r)}
	for _, m := range r.Metrics {
		line := strings.TrimSpace(fmt.Sprintf("%s %.12g %s %s", m.Name, m.Value, m.Unit, m.Direction))
		if m.Headline {
			line += " headline"
		}
		all = append(all, line)
	}
	return all
}

func TestWithoutOptionsEachNumberIsAMetric(t *testing.T) {
	t.Parallel()
	want := []string{
		"ok", "throughput 118.25 1", "latency.mean 0.0084 1", "latency.histogram[0] 3 1", "latency.histogram[1] 14 1",
		"latency.histogram[2] 15 1",
		"latency.histogram[3] 9 1", "stages[0].seconds 1.5 1", "stages[1].seconds 2.25 1", `["requests per s"]["GET /"] 12000 1`,
	}
	if diff := cmp.Diff(want, lines(parse(t, capture(t, "result.json")))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOfSeveralDocumentsTheLastValueCounts(t *testing.T) {
	t.Parallel()
	want := []string{"ok", "epoch 3 1", "loss 0.37 1", "accuracy 0.8125 1"}
	if diff := cmp.Diff(want, lines(parse(t, capture(t, "lines.jsonl")))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text := "loading [x]\n" + capture(t, "lines.jsonl") + "[2] of 3\ndone\n"
	got := lines(parse(t, text, report.Selection{Name: "a", Path: "accuracy"}))
	if diff := cmp.Diff([]string{"ok", "a 0.8125 1 headline"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSelectedNumbersAreMetrics(t *testing.T) {
	t.Parallel()
	got := lines(parse(t, capture(t, "result.json"),
		report.Selection{Name: "throughput", Path: "throughput", Unit: "op/s", Direction: report.Higher},
		report.Selection{Name: "p99", Path: "latency.p99", Unit: "s", Direction: report.Lower},
		report.Selection{Path: "stages[1].seconds", Unit: "s"},
		report.Selection{Name: "get", Path: `["requests per s"]["GET /"]`},
	))
	want := []string{
		"ok", "throughput 118.25 op/s higher headline", "p99 0.0312 s lower headline", "stages[1].seconds 2.25 s headline",
		"get 12000 1 headline",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhereAPathLeadsToNoNumberItIsNamed(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"thruput":             "failed nothing is at thruput: did you mean throughput?",
		"latency.p95":         "failed nothing is at latency.p95: did you mean latency.p99?",
		"mean":                "failed nothing is at mean: did you mean latency.mean?",
		"stages[2].seconds":   "failed nothing is at stages[2].seconds: did you mean stages[0].seconds?",
		"zzzzzzzzzzzzzzzzzzz": "failed nothing is at zzzzzzzzzzzzzzzzzzz",
		"name":                `failed name is no number: "resize of images"`,
		"ok":                  "failed ok is no number: true",
		"latency":             "failed latency is no number: an object",
		"stages":              "failed stages is no number: an array",
		"":                    "failed the path is empty",
		"a..b":                `failed the path "a..b": a key is missing before ".b"`,
		"a[x]":                `failed the path "a[x]": "[x]" is no index in brackets`,
		"a[1":                 `failed the path "a[1": "[1" is no index in brackets`,
		`a["x]`:               `failed the path "a[\"x]": "[\"x]" is no key in brackets`,
		"a[1]b":               `failed the path "a[1]b": a point is missing before "b"`,
	} {
		if got := lines(parse(t, capture(t, "result.json"), report.Selection{Name: "m", Path: path}))[0]; got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	got := lines(parse(t, capture(t, "result.json"),
		report.Selection{Path: "throughput"}, report.Selection{Path: "x.y.z"}, report.Selection{Name: "throughput", Path: "latency.mean"}))
	want := []string{`partial nothing is at x.y.z; two metrics have the name "throughput"`, "throughput 118.25 1 headline"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEveryNameIsAPath(t *testing.T) {
	t.Parallel()
	text := `{"a": 1, "": 2, "a.b": {"[0]": 3, "é": [[4], {"\"\\\n<": 5}]}, "\u0041": 6}`
	for _, m := range parse(t, text).Metrics {
		r := parse(t, text, report.Selection{Path: m.Name})
		if r.State != report.OK || r.Metrics[0].Value != m.Value {
			t.Errorf("%s: %s, want %g", m.Name, lines(r), m.Value)
		}
	}
	if r := parse(t, `[1, [2]]`, report.Selection{Path: "[1][0]"}); r.Metrics[0].Value != 2 {
		t.Errorf("%s, want 2", lines(r))
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 1002 {
		fmt.Fprintf(&many, `{"k%d": 1}`+"\n", i)
	}
	for name, tt := range map[string]struct{ text, want string }{
		"one number":                    {`{"a": 1}`, "ok"},
		"more than 1,000 numbers":       {many.String(), "partial 2 values are left out: the first 1000 numbers are metrics"},
		"a number that is too large":    {`{"a": 1e999, "b": 1}`, "partial 1 numbers are too large"},
		"no number":                     {`{"a": "1"}`, "empty no number in the JSON"},
		"a document that ends early":    {`{"a": 1, "b": `, "empty the JSON ends early"},
		"a last one that ends early":    {`{"a": 1}` + "\n" + `{"a": 2`, "partial the JSON ends early"},
		"objects in one that is broken": {"{\"a\": 1,\n [ x", "empty no JSON in the text"},
		"another text":                  {"hello\n", "empty no JSON in the text"},
		"nothing":                       {"", "empty no JSON in the text"},
	} {
		if got := lines(parse(t, tt.text))[0]; got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	for text, want := range map[string]string{
		"": "empty no JSON in the text", `{"a": `: "empty the JSON ends early", `{"a": 1}{`: "partial the JSON ends early",
	} {
		if got := lines(parse(t, text, report.Selection{Path: "a"}))[0]; got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestOnlyJSONOfNoToolLooksLikeIt(t *testing.T) {
	t.Parallel()
	for _, text := range []string{capture(t, "result.json"), capture(t, "lines.jsonl"), "[1]", capture(t, "result.json")[:100]} {
		if !json.Kind().Looks([]byte(text)) {
			t.Errorf("%.60q does not look like it", text)
		}
	}
	for _, text := range []string{
		"", "hello", "[  3] 0.0-1.0 sec", "[INFO] x", `{"a": {"latency": {"value": 1}}}`, `[{"primaryMetric": {}}]`,
		`{"root_group": {}, "metrics": {}}`,
		`{"fio version": "fio-3.33"}`, `{"start": {"version": "iperf 3.12"}}`, "{x}",
	} {
		if json.Kind().Looks([]byte(text)) {
			t.Errorf("%.60q looks like it", text)
		}
	}
}

func TestParserOfJSONPassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind: json.Kind(),
		Cuts: []reporttest.Cut{{File: "result.json", End: "}", NoHeadline: true, Bytes: true}},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	f.Add(capture(f, "result.json"), "latency.p99")
	f.Add(capture(f, "lines.jsonl"), `["a\u0020b"][0].c`)
	f.Add(`{"a":[1,{"b":-0.5e3}],"c":"\ud800"}`+"\n[", "a[1].b")
	f.Fuzz(func(t *testing.T, text, path string) {
		parse(t, text)
		parse(t, text, report.Selection{Name: "m", Path: path}, report.Selection{Name: "n", Path: path})
	})
}

func BenchmarkParse(b *testing.B) {
	document := "[" + strings.Repeat(capture(b, "result.json")+",", 2000) + "{}]"
	for name, bench := range map[string]struct {
		text    string
		options report.Options
	}{
		"all":      {document, report.Options{}},
		"selected": {document, report.Options{Metrics: []report.Selection{{Path: "[7].throughput"}, {Path: "[8].latency.mean"}}}},
		"lines":    {strings.Repeat(capture(b, "lines.jsonl"), 5000), report.Options{Metrics: []report.Selection{{Path: "loss"}}}},
	} {
		b.Run(name, func(b *testing.B) {
			reporttest.Benchmark(b, json.Kind(), bench.text, bench.options.Metrics...)
		})
	}
}
