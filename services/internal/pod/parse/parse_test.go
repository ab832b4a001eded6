package parse_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/parse"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// piece is output of one stream.
type piece struct {
	isErr bool
	text  string
}

// parseAll hands pieces of output to parsers, and returns what each found.
func parseAll(parsers []pod.Parser, output ...piece) []parse.Result {
	p := parse.Start(parsers, parse.Spool{})
	for _, piece := range output {
		p.Write(piece.isErr, []byte(piece.text))
	}
	return p.End(nil)
}

// values returns the metrics of a report as name=value.
func values(r report.Report) string {
	var all []string
	for _, m := range r.Metrics {
		v, _ := json.Marshal(m.Value)
		all = append(all, m.Name+"="+string(v))
	}
	return strings.Join(all, " ")
}

func TestAParserReadsTheStreamsThatItIsFor(t *testing.T) {
	t.Parallel()
	const goBench, seconds = "BenchmarkA-2 \t 100 \t 25 ns/op\n", "{\"seconds\": 2}\n"
	for name, tt := range map[string]struct {
		parser pod.Parser
		output []piece
		want   string
	}{
		"a log has lines of both": {pod.Parser{Kind: "gobench"}, []piece{{true, goBench}}, "sec_per_op=2.5e-8"},
		"lines stay whole where the streams interrupt each other": {
			pod.Parser{Kind: "gobench"}, []piece{{false, goBench[:9]}, {true, "a warn"}, {false, goBench[9:]}, {true, "ing\n"}}, "sec_per_op=2.5e-8",
		},
		"the last line may have no end":               {pod.Parser{Kind: "gobench"}, []piece{{false, strings.TrimSpace(goBench)}}, "sec_per_op=2.5e-8"},
		"a document is on standard output":            {pod.Parser{Kind: "json"}, []piece{{false, seconds[:5]}, {true, "a {warning}\n"}, {false, seconds[5:]}}, "seconds=2"},
		"unless the descriptor says otherwise":        {pod.Parser{Kind: "json", Stream: "stderr"}, []piece{{false, `{"other": 1}`}, {true, seconds}}, "seconds=2"},
		"or both":                                     {pod.Parser{Kind: "json", Stream: "both"}, []piece{{true, seconds}}, "seconds=2"},
		"a number of a document has the name it gets": {pod.Parser{Kind: "json", Metrics: map[string]string{"t": "seconds"}}, []piece{{false, seconds}}, "t=2"},
		"a kind may be guessed":                       {pod.Parser{Kind: "auto"}, []piece{{false, seconds}}, "seconds=2"},
		"more than a parser reads is taken, too":      {pod.Parser{Kind: "hyperfine"}, []piece{{false, strings.Repeat("x", 1<<20)}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := parseAll([]pod.Parser{tt.parser}, tt.output...)
			if len(got) != 1 || values(got[0].Report) != tt.want {
				t.Errorf("%+v, want %s", got, tt.want)
			}
		})
	}
}

// TestAServerThatFioDidNotReachIsMissing has what fio prints with two servers of which one does not listen: its exit code is 0.
func TestAServerThatFioDidNotReachIsMissing(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../parsers/fio/testdata/server-absent.json")
	if err != nil {
		t.Fatal(err)
	}
	begin := strings.Index(string(text), "\n{") + 1
	messages, document := string(text[:begin]), strings.TrimSpace(string(text[begin:]))
	want, chatter := "partial fio: failed to connect to 127.0.0.1:18779", piece{true, strings.Repeat("note: x\n", 2<<20)}
	for name, output := range map[string][]piece{
		"messages before the document":      {{true, messages}, {false, document}},
		"messages amid it, and not at once": {{false, document[:1001]}, {true, messages[:50]}, {false, document[1001:]}, {true, messages[50:]}},
		"messages behind it":                {{false, document}, {true, messages}},
		"more messages than are kept":       {{true, messages}, chatter, chatter, chatter, {false, document}, chatter, chatter},
	} {
		for _, stream := range []string{"", "both"} {
			got := parseAll([]pod.Parser{{Kind: "fio", Stream: stream}}, output...)[0].Report
			if is := string(got.State) + " " + got.Reason; is != want || values(got) == "" {
				t.Errorf("%s, stream %q: %s with %d metrics, want %s", name, stream, is, len(got.Metrics), want)
			}
			for _, m := range got.Metrics {
				if m.Headline {
					t.Errorf("%s: headline %v of one server of two", name, m)
				}
			}
		}
	}
}

func TestALineThatNeverEndsIsTaken(t *testing.T) {
	t.Parallel()
	p := parse.Start([]pod.Parser{{Kind: "gobench"}}, parse.Spool{})
	long := []byte(strings.Repeat("x", 64<<10))
	for range 1000 {
		p.Write(false, long)
	}
	p.Write(false, []byte("\nBenchmarkA-2 \t 100 \t 25 ns/op\n"))
	if r := p.End(nil); values(r[0].Report) != "sec_per_op=2.5e-8" {
		t.Errorf("%+v", r)
	}
}

func TestAFileIsReadOnceTheBenchmarkHasEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := parse.Start([]pod.Parser{
		{Kind: "json", Path: filepath.Join(dir, "result.json")},
		{Kind: "json", Path: filepath.Join(dir, "*.json")},
		{Kind: "json", Path: filepath.Join(dir, "none.json")},
		{Kind: "json", Path: dir + "/[", Optional: true},
		{Kind: "json", Path: filepath.Join(dir, "link.json")},
		{Kind: "csv", Path: filepath.Join(dir, "?.csv")},
	}, parse.Spool{})
	for name, text := range map[string]string{"result.json": `{"a": 1}`, "second.json": `{"a": 2}`, "t.csv": "rate\n7\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, r := range p.End(nil) {
		got = append(got, string(r.Report.State)+" "+values(r.Report)+r.Report.Reason)
	}
	name := strings.TrimPrefix(dir, "/")
	want := []string{
		"ok a=1", "empty 2 files match it, as " + name + "/result.json and " + name + "/second.json", "empty the benchmark left no such file",
		"empty artifact \"" + dir + "/[\" is not kept: it is no pattern for files", "empty the benchmark left no such file", "ok rate=7",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// writeFile writes a file, and returns its path.
func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAFileThatWasThereBeforeAndHasNotChangedIsMissing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		path string
		left func(t *testing.T, dir string) // what the benchmark leaves
		want string
	}{
		"as it was":     {"a.json", func(*testing.T, string) {}, "empty DIR/a.json was there before the benchmark and has not changed"},
		"by a pattern":  {"*.json", func(*testing.T, string) {}, "empty DIR/a.json was there before the benchmark and has not changed"},
		"written again": {"a.json", func(t *testing.T, dir string) { t.Helper(); writeFile(t, dir, "a.json", `{"a": 22}`) }, "ok a=22"},
		"replaced by its like": {"a.json", func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Rename(writeFile(t, dir, "new", `{"a": 1}`), filepath.Join(dir, "a.json")); err != nil {
				t.Fatal(err)
			}
		}, "ok a=1"},
		"beside a new one": {"*.json", func(t *testing.T, dir string) { t.Helper(); writeFile(t, dir, "c.json", `{"a": 3}`) }, "ok a=3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeFile(t, dir, "a.json", `{"a": 1}`)
			writeFile(t, dir, "b.json", `{"a": 2}`)
			p := parse.Start([]pod.Parser{{Kind: "json", Path: filepath.Join(dir, tt.path)}}, parse.Spool{})
			tt.left(t, dir)
			r := p.End(nil)[0].Report
			got := strings.ReplaceAll(string(r.State)+" "+values(r)+r.Reason, strings.TrimPrefix(dir, "/"), "DIR")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatIsMissingDecidesHowTheBenchmarkEnded(t *testing.T) {
	t.Parallel()
	found := []report.Metric{{Name: "rate", Value: 1, Unit: "B/s"}}
	ok, part := report.Of("iperf2", "", found, ""), report.Of("iperf2", "", found, "no sum")
	fails, empty := report.Failure("iperf2", "", nil, "connect failed"), report.Of("iperf2", "", nil, "no header")
	of := func(r report.Report) parse.Result { return parse.Result{Parser: pod.Parser{Kind: "iperf2"}, Report: r} }
	ofCommand := func(r report.Report) parse.Result {
		return parse.Result{Parser: pod.Parser{Kind: "command", Command: []string{"python3", "p.py"}}, Report: r}
	}
	read := of(empty)
	read.Head = []string{"hello", `a "b"`}
	optional := of(empty)
	optional.Parser.Optional, optional.Parser.Path = true, "/tmp/x"
	for name, tt := range map[string]struct {
		results []parse.Result
		code    int
		problem string
		notices []string
	}{
		"no parser":                    {},
		"all was there":                {results: []parse.Result{of(ok)}},
		"a part":                       {results: []parse.Result{of(part)}, notices: []string{"a part of the results of iperf2 in the output is missing: no sum"}},
		"nothing":                      {results: []parse.Result{read}, problem: `the output has no result that parser iperf2 reads: no header; it begins with "hello", "a \"b\""`},
		"a command that failed":        {results: []parse.Result{ofCommand(fails)}, problem: `parser "python3 p.py" of the output: connect failed`},
		"a part that a command read":   {results: []parse.Result{ofCommand(part)}, notices: []string{`a part of the results of parser "python3 p.py" in the output is missing: no sum`}},
		"nothing that a command reads": {results: []parse.Result{ofCommand(empty)}, problem: `the output has no result that parser "python3 p.py" reads: no header`},
		"a failure":                    {results: []parse.Result{of(fails)}, problem: "iperf2 says in the output that it failed: connect failed"},
		"it is optional":               {results: []parse.Result{optional}, notices: []string{"/tmp/x has no result that parser iperf2 reads: no header"}},
		"the first of several is the reason": {
			results: []parse.Result{of(ok), of(fails), of(empty)}, problem: "iperf2 says in the output that it failed: connect failed",
			notices: []string{"the output has no result that parser iperf2 reads: no header"},
		},
		"a benchmark that failed has a reason of its own": {results: []parse.Result{of(empty)}, code: 1},
		"beside what the tool says":                       {results: []parse.Result{of(fails), of(part)}, code: 1, notices: []string{"iperf2 says in the output that it failed: connect failed", "a part of the results of iperf2 in the output is missing: no sum"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problem, notices := parse.Judge(tt.results, tt.code)
			if diff := cmp.Diff(tt.problem, problem) + cmp.Diff(tt.notices, notices); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMetricsAreLinesOfClientLibraries(t *testing.T) {
	t.Parallel()
	results := []parse.Result{
		{Report: report.Report{Kind: "iperf2", Version: "2.1.9", Metrics: []report.Metric{
			{Name: "bandwidth", Value: 72465125000, Unit: "bits/s", Direction: report.Higher, Labels: map[string]string{"stream": "sum"}},
			{Name: "loss", Value: 0.5, Unit: "ratio", Labels: map[string]string{}},
		}}},
		{Report: report.Report{Kind: "json", Metrics: []report.Metric{{Name: "a", Value: 1, Unit: "1"}}}},
		{Parser: pod.Parser{Kind: "command", Command: []string{"./p", "-x"}}, Report: report.Report{Kind: "command", Version: "3", Metrics: []report.Metric{{Name: "b", Value: 2, Unit: "1"}, {Name: "c", Value: 3, Unit: "s"}}}},
	}
	want := `{"@direction":"higher","@labels":{"stream":"sum"},"@time":1767323045.25,"@unit":"bits/s","bandwidth":72465125000}
{"@time":1767323045.25,"@unit":"ratio","loss":0.5}
{"@time":1767323045.25,"a":1}
{"@time":1767323045.25,"b":2}
{"@time":1767323045.25,"@unit":"s","c":3}
`
	if diff := cmp.Diff(want, string(parse.AppendLines(nil, results, 1767323045.25))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"iperf2": "2.1.9", "./p -x": "3"}, parse.Versions(results)); diff != "" {
		t.Error(diff)
	}
}
