package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

// withParsers returns a descriptor of a script, and tables.
func withParsers(script string, tables ...string) string {
	return command("#!/bin/sh -eu\n"+script+"\n") + strings.Join(tables, "\n")
}

// parserOf returns the table of a parser.
func parserOf(kind string, keys ...string) string {
	return "[[output.parsers]]\nkind = \"" + kind + "\"\n" + strings.Join(keys, "\n") + "\n"
}

// goBench writes what go test -bench prints.
const goBench = `printf 'pkg: p\nBenchmarkA-2 \t 100 \t 25 ns/op\nPASS\nok \tp\t1s\n'`

func TestParsersFindTheResultsOfABenchmark(t *testing.T) {
	t.Parallel()
	p, file := start(t), filepath.Join(t.TempDir(), "result.json")
	run := p.submit(withParsers(
		goBench+"; echo noise >&2; echo '{\"results\": {\"rate\": 2000}}' > "+file,
		parserOf("gobench"), parserOf("json", "path = \""+file+"\"", `metrics = { rate = "results.rate" }`, "required = false"),
		"[[output.metrics]]\nname = \"sec_per_op\"\nunits = \"ns\"\n[[output.metrics]]\nname = \"rate\"\nunits = \"images/s\"\ndirection = \"higher\"\n",
	))
	if r := p.awaitComplete(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Fatalf("ended as %v\n%s", r, strings.Join(p.lines(run), "\n"))
	}
	if diff := cmp.Diff(map[string][]float64{"sec_per_op": {25}, "rate": {2000}}, p.metricValues(run)); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	wantNoPod(t, p, run)
}

// ownParser returns the table of a parser of kind command with a script.
func ownParser(script string, keys ...string) string {
	return parserOf("command", append(keys, "command = '''\n#!/bin/sh -u\n"+script+"\n'''")...)
}

func TestAParserOfOnesOwnFindsTheResultsOfABenchmark(t *testing.T) {
	t.Parallel()
	p, dir := start(t), t.TempDir()
	script := filepath.Join(dir, "parse.sh")
	tooltest.WriteProgram(t, script, "#!/bin/sh\nread -r rate\necho \"{\\\"name\\\": \\\"file_rate\\\", \\\"value\\\": $rate}\"\n")
	run := p.submit(withParsers(
		"echo latency 250; echo noise >&2; echo 2000 > "+dir+"/result",
		ownParser(`sed -n 's/latency \(.*\)/{"name": "latency", "value": \1, "unit": "ms", "direction": "lower"}/p'; echo '{"version": "1.2"}'`),
		parserOf("command", "command = \""+script+"\"", "path = \""+dir+"/result\"", "deadline = \"30s\""),
		"[[output.metrics]]\nname = \"latency\"\nunits = \"s\"\n",
	))
	if r := p.awaitComplete(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Fatalf("ended as %v\n%s", r, strings.Join(p.lines(run), "\n"))
	}
	if diff := cmp.Diff(map[string][]float64{"latency": {0.25}, "file_rate": {2000}}, p.metricValues(run)); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	wantNoPod(t, p, run)
}

func TestABenchmarkWhoseOwnParserBreaksARuleHasFailed(t *testing.T) {
	t.Parallel()
	p := start(t)
	for name, tt := range map[string]struct{ script, keys, want string }{
		"hangs":  {"sleep 1000", `deadline = "1s"`, "has not ended after 1s (deadline), and was killed"},
		"floods": {"yes ''", "", "with it there are more than 4 MiB"},
		"dies":   {"echo oh >&2; exit 3", "", `ended with exit code 3; its standard error ends with "oh"`},
		"prints": {"echo hello", "", `line 1 of its output is refused: it is not a JSON object: "hello"`},
	} {
		run := p.submit(withParsers("echo hello", ownParser(tt.script, tt.keys)))
		r := p.awaitComplete(run)
		if r.GetOutcome() != baiv1.Outcome_OUTCOME_FAILED || r.GetReason() != "NoResults" || r.GetFailureClass() != baiv1.FailureClass_FAILURE_CLASS_USER || !strings.Contains(r.GetMessage(), tt.want) {
			t.Errorf("%s: ended as %v", name, r)
		}
	}
}

func TestABenchmarkWithoutAResultHasFailedAndOneWithAPartHasNot(t *testing.T) {
	t.Parallel()
	p := start(t)
	for name, tt := range map[string]struct {
		script, keys   string
		outcome        baiv1.Outcome
		reason, notice string // of the run; of a status
	}{
		"nothing":             {"echo hello", "", baiv1.Outcome_OUTCOME_FAILED, "NoResults", ""},
		"nothing is required": {"echo hello", "required = false", baiv1.Outcome_OUTCOME_SUCCEEDED, "", `has no result that parser gobench reads`},
		"a part":              {`printf 'BenchmarkA-2 \t 100 \t 25 ns/op\n'`, "", baiv1.Outcome_OUTCOME_SUCCEEDED, "", "a part of the results of gobench in the output is missing: neither PASS nor FAIL"},
		"a failure":           {goBench + "; echo FAIL", "", baiv1.Outcome_OUTCOME_FAILED, "NoResults", ""},
		"it failed by itself": {"echo hello; exit 3", "", baiv1.Outcome_OUTCOME_FAILED, "NonZeroExit", ""},
	} {
		run := p.submit(withParsers(tt.script, parserOf("gobench", tt.keys)))
		r := p.awaitComplete(run)
		if r.GetOutcome() != tt.outcome || r.GetReason() != tt.reason {
			t.Errorf("%s: ended as %v", name, r)
		}
		if tt.reason == "NoResults" && name == "nothing" && !strings.Contains(r.GetMessage(), `it begins with "hello"`) {
			t.Errorf("%s: the message is %q", name, r.GetMessage())
		}
		if seen := p.snapshot(run); tt.notice != "" && !strings.Contains(seen, tt.notice) {
			t.Errorf("%s: no status %q in\n%s", name, tt.notice, seen)
		}
	}
}
