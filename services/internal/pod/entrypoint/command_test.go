//go:build linux

package entrypoint_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/entrypoint"
)

func TestAParserOfOnesOwnReadsTheOutputAndFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, script := filepath.Join(dir, "result"), filepath.Join(dir, "parser.sh")
	write(t, script, `#!/bin/sh
read -r word number
printf '{"name": "%s", "value": %s, "unit": "s", "direction": "lower", "labels": {"code": "%s"}}\n' "$word" "$number" "$BAI_EXIT_CODE"
echo '{"version": "1.2"}'
`, 0o600) // without the right to be executed
	r := command(t, entrypoint.Settings{
		Dir: dir, Args: sh("echo latency 0.25; echo other 7 > " + file),
		Parsers: []pod.Parser{{Kind: "command", Command: []string{script}}, {Kind: "command", Path: file, Command: []string{"/bin/sh", "$(PARSER_DIR)/parser.sh"}}},
	})
	r.Env = append(r.Env, "PARSER_DIR="+dir)
	e := r.waitForExit(t)
	if diff := cmp.Diff(map[string]string{script: "1.2", "/bin/sh $(PARSER_DIR)/parser.sh": "1.2"}, e.Tools); e.Code != 0 || len(e.Notices) > 0 || diff != "" {
		t.Errorf("%+v %s", e, diff)
	}
	want := `{"@direction":"lower","@labels":{"code":"0"},"@time":T,"@unit":"s","latency":0.25}
{"@direction":"lower","@labels":{"code":"0"},"@time":T,"@unit":"s","other":7}
`
	if diff := cmp.Diff(want, withoutTimes(r.file(t, pod.Metrics))); diff != "" {
		t.Error(diff)
	}
}

func TestAParserOfOnesOwnThatBreaksARuleFailsTheBenchmark(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		parser pod.Parser
		want   string
	}{
		"hangs":             {pod.Parser{Command: sh("sleep 1000 & exec sleep 1000"), Deadline: 100 * time.Millisecond}, "has not ended after 100ms (deadline), and was killed"},
		"floods":            {pod.Parser{Command: sh("yes ''")}, `line 4194305 of its output is refused: with it there are more than 4 MiB: ""`},
		"dies":              {pod.Parser{Command: sh("echo no such key >&2; exit 3")}, `ended with exit code 3; its standard error ends with "no such key"`},
		"prints":            {pod.Parser{Command: sh("echo hello")}, `line 1 of its output is refused: it is not a JSON object: "hello"`},
		"is not there":      {pod.Parser{Command: []string{"/no/such"}}, "cannot be started: no such file or directory"},
		"takes much memory": {pod.Parser{Command: sh("until grep -q 67108864 /proc/$$/limits; do :; done; dd if=/dev/zero of=/dev/null bs=200M count=1 2>/dev/null || exit 9"), Memory: 64 << 20}, "ended with exit code 9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			message := filepath.Join(t.TempDir(), "message")
			write(t, message, "", 0o600)
			tt.parser.Kind = "command"
			e := command(t, entrypoint.Settings{Parsers: []pod.Parser{tt.parser}, Args: sh("echo hello"), MessagePath: message}).waitForExit(t)
			text, err := os.ReadFile(message)
			if err != nil {
				t.Fatal(err)
			}
			if said := string(text); e.Code != pod.ExitNoResults || !strings.HasPrefix(said, "NoResults: parser \"") || !strings.Contains(said, " of the output: "+tt.want) {
				t.Errorf("exit code %d, %s, want %s", e.Code, said, tt.want)
			}
		})
	}
}

func TestASignalToEndLeavesAParserTheGrace(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		grace          time.Duration
		script, parser string
		code           int
	}{
		"a parser that hangs is killed": {50 * time.Millisecond, "true", "touch STARTED; exec sleep 1000", pod.ExitNoResults},
		"one of a server ends by itself": {
			time.Hour, "trap 'exit 0' TERM; touch STARTED; sleep 1000 & wait", `echo '{"name": "a", "value": 1}'`, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			started := filepath.Join(dir, "started")
			named := strings.NewReplacer("STARTED", started)
			r := command(t, entrypoint.Settings{
				Dir: dir, Args: sh(named.Replace(tt.script)), Grace: tt.grace,
				Parsers: []pod.Parser{{Kind: "command", Command: sh(named.Replace(tt.parser)), Deadline: time.Hour}},
			})
			if err := r.Start(); err != nil {
				t.Fatal(err)
			}
			r.waitUntil(t, "it runs", func() bool {
				_, err := os.Stat(started)
				return err == nil
			})
			if err := r.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if e := r.waitForExit(t); e.Code != tt.code || !e.Stopped || (tt.code == 0) != strings.Contains(string(r.file(t, pod.Metrics)), `"a":1`) {
				t.Errorf("%+v", e)
			}
		})
	}
}
