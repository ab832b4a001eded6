package e2e_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

// limited is a program that runs bai with a limit of open files.
func limited(t *testing.T, limit string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bai")
	tooltest.WriteProgram(t, path, fmt.Sprintf("#!/bin/sh\nulimit %s\nexec %s \"$@\"\n", limit, filepath.Join(bin, "bai")))
	return path
}

func TestAPlatformIsRefusedWhereItCouldOpenTooFewFiles(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"64", "128", "256", "383"} {
		out, err := exec.CommandContext(t.Context(), limited(t, "-n "+limit), "standalone", "--data", t.TempDir(), "--listen", "127.0.0.1:0").CombinedOutput()
		want := "bai: this process may have " + limit + " files open, and needs 384 for 1 run at a time"
		if err == nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("ulimit -n %s: %v, said %q, want %q", limit, err, out, want)
		}
	}
}

// TestTheLeastNumberOfOpenFilesIsEnough: with as many as are asked for, and with
// a soft limit that is lower, every run gets on.
func TestTheLeastNumberOfOpenFilesIsEnough(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limit string
		slots int
	}{
		"one run": {"-n 384", 1}, "four runs": {"-n 456", 4}, "a soft limit is raised": {"-S -n 64", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &platform{t: t, program: limited(t, tt.limit), dir: filepath.Join(t.TempDir(), "data"), args: []string{"--slots", fmt.Sprint(tt.slots)}}
			p.runToEnd()
			var runs []string
			for range 3 * tt.slots {
				runs = append(runs, p.submit(script(`echo hi; sleep 0.3; echo '{"x": 1}' >>"$BENCHMARK_AI_FILE"`)))
			}
			for _, run := range runs {
				if r := p.awaitComplete(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
					t.Errorf("run %s ended as %v", run, r)
				}
			}
		})
	}
}
