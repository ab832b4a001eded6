//go:build linux

package emit_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/emit"
)

// The whole suite, which starts the program as a benchmark does, is that of the
// script: client-lib/shell.

type result struct {
	Out  string
	Code int
}

// run emits in an environment of nothing.
func run(args []string) (r result, errText string) {
	var out, errs bytes.Buffer
	r.Code = emit.Run(args, func(string) string { return "" }, &out, &errs)
	r.Out = out.String()
	return r, errs.String()
}

func TestTheTableOfTheClientLibrariesIsPrinted(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../../../client-lib/emit/testdata/conformance.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Cases []struct {
			Name  string
			Line  string
			Shell *struct {
				Args []string
				Line string
			}
		}
		Refused [][]string `json:"refused_by_shell"`
	}
	if err := json.Unmarshal(b, &table); err != nil {
		t.Fatal(err)
	}
	for _, tt := range table.Cases {
		if tt.Shell == nil {
			continue
		}
		r, errText := run(tt.Shell.Args)
		if diff := gocmp.Diff(result{Out: cmp.Or(tt.Shell.Line, tt.Line) + "\n"}, r); diff != "" || errText != "" {
			t.Errorf("%s: %s (-want +got):\n%s", tt.Name, errText, diff)
		}
	}
	for _, args := range table.Refused {
		if r, errText := run(args); r.Code != 2 || r.Out != "" || errText == "" {
			t.Errorf("%q: %+v and %q, want exit code 2 and why", args, r, errText)
		}
	}
}

func TestOptionsMayFollowMetrics(t *testing.T) {
	t.Parallel()
	for line, args := range map[string][]string{
		`{"--a": 1}`:                     {"--", "--a=1"},
		`{"-a": 1}`:                      {"-a=1"},
		`{"a": 1, "--b": 2}`:             {"a=1", "--b=2"},
		`{"a": 1, "@step": 3}`:           {"a=1", "--step", "3"},
		`{"a": 1, "b": 2, "@step": 4}`:   {"a=1", "--step=4", "b=2"},
		`{"a": 1, "--step": 5}`:          {"a=1", "--", "--step=5"},
		`{"a": 1, "@step": -3}`:          {"--step", "1", "--step=-003", "a=1"},
		`{"a\u007f": 1, "@unit": "\"€"}`: {"--unit", `"€`, "a\x7f=1"},
	} {
		if diff := gocmp.Diff(result{Out: line + "\n"}, first(run(args))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", args, diff)
		}
	}
}

func first(r result, _ string) result { return r }

func TestALineThatWasTornIsEndedFirst(t *testing.T) {
	t.Parallel()
	for before, want := range map[string]string{
		"":                         "",
		"{\"a\": 1":                "{\"a\": 1\n",
		"{\"a\": 1}\n":             "{\"a\": 1}\n",
		"{\"a\": 1}\n{\"a":         "{\"a\": 1}\n{\"a\n",
		"released\x00\x00\x00\x00": "released\x00\x00\x00\x00",
	} {
		file := filepath.Join(t.TempDir(), "metrics")
		if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code := emit.Run([]string{"--time", "5.5", "b=2"}, func(name string) string { return map[string]string{pod.EnvFile: file}[name] }, &out, &errs)
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want+"{\"b\": 2, \"@time\": 5.5}\n", string(got)); code != 0 || diff != "" {
			t.Errorf("%q: exit code %d, %s (-want +got):\n%s", before, code, errs.String(), diff)
		}
	}
}
