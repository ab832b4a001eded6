//go:build linux

package entrypoint_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/entrypoint"
)

// withoutTimes replaces the times of emitted lines.
func withoutTimes(lines []byte) string {
	return regexp.MustCompile(`"@time":[0-9.e+]+`).ReplaceAllString(string(lines), `"@time":T`)
}

func TestResultsOfTwoToolsAreEmitted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "result.json")
	r := command(t, entrypoint.Settings{
		Dir: dir, Parsers: []pod.Parser{{Kind: "gobench"}, {Kind: "json", Path: file, Metrics: map[string]string{"rate": "all[0].rate"}}},
		Args: sh(`printf '{"own": 1' >> ` + pod.PathIn(dir, pod.Metrics) + `; echo 'BenchmarkA 	 100 	 25 ns/op'; echo PASS; echo '{"all": [{"rate": 7}]}' > ` + file),
	})
	if e := r.waitForExit(t); e.Code != 0 || len(e.Notices) > 0 {
		t.Errorf("%+v", e)
	}
	want := `{"own": 1
{"@direction":"lower","@labels":{"benchmark":"A","procs":"1"},"@time":T,"@unit":"s","sec_per_op":2.5e-8}
{"@time":T,"rate":7}
`
	if diff := cmp.Diff(want, withoutTimes(r.file(t, pod.Metrics))); diff != "" {
		t.Error(diff)
	}
}

func TestABenchmarkThatEndsWellWithoutAResultHasFailed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		parser  pod.Parser
		script  string
		code    int
		message string
		notices []string
	}{
		"without anything": {
			pod.Parser{Kind: "iperf3"},
			"echo hello; echo oh >&2", pod.ExitNoResults,
			`NoResults: the output has no result that parser iperf3 reads: REASON; it begins with "hello"`, nil,
		},
		"it failed already":   {pod.Parser{Kind: "iperf3"}, "echo hello; exit 3", 3, "hello", nil},
		"no result is needed": {pod.Parser{Kind: "iperf3", Optional: true}, "echo hello", 0, "", []string{`the output has no result that parser iperf3 reads: REASON; it begins with "hello"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			message := filepath.Join(t.TempDir(), "message")
			write(t, message, "", 0o600)
			e := command(t, entrypoint.Settings{Parsers: []pod.Parser{tt.parser}, Args: sh(tt.script), MessagePath: message}).waitForExit(t)
			reason := regexp.MustCompile(`(reads: )[^;]+`)
			for i, n := range e.Notices {
				e.Notices[i] = reason.ReplaceAllString(n, "${1}REASON")
			}
			text, err := os.ReadFile(message)
			if err != nil {
				t.Fatal(err)
			}
			said := reason.ReplaceAllString(strings.TrimSpace(string(text)), "${1}REASON")
			if diff := cmp.Diff(tt.notices, e.Notices) + cmp.Diff(tt.message, said); e.Code != tt.code || diff != "" {
				t.Errorf("exit code %d, %s", e.Code, diff)
			}
		})
	}
}

func TestTheVersionOfTheToolIsKept(t *testing.T) {
	t.Parallel()
	e := command(t, entrypoint.Settings{
		Parsers: []pod.Parser{{Kind: "iperf3"}}, Args: sh(`echo '{"start": {"version": "iperf 3.12"}, "error": "unable to connect"}'`),
	}).waitForExit(t)
	if diff := cmp.Diff(map[string]string{"iperf3": "3.12"}, e.Tools); e.Code != pod.ExitNoResults || diff != "" {
		t.Errorf("%+v: %s", e, diff)
	}
}
