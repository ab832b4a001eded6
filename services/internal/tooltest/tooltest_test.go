package tooltest_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

// outcome is a test that notes how it ended.
type outcome struct {
	testing.TB

	ended string
}

// Helper implements testing.TB.
func (o *outcome) Helper() {}

// Fatalf implements testing.TB.
func (o *outcome) Fatalf(format string, args ...any) {
	o.ended = "failed: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// Skipf implements testing.TB.
func (o *outcome) Skipf(format string, args ...any) {
	o.ended = "skipped: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestAMissingProgramSkipsATestAndFailsItWhereChecksRun(t *testing.T) {
	for ci, want := range map[string]string{"": "skipped: no-such-program is missing: apt-get install it", "1": "failed: no-such-program is missing: apt-get install it"} {
		t.Setenv("CI", ci)
		o, done := &outcome{TB: t}, make(chan struct{})
		go func() {
			defer close(done)
			tooltest.Program(o, "no-such-program", "it")
		}()
		if <-done; o.ended != want {
			t.Errorf("with CI=%q it %s, want %s", ci, o.ended, want)
		}
	}
	if path := tooltest.Program(t, "go", "golang"); !strings.Contains(path, "go") {
		t.Errorf("go is at %q", path)
	}
}

func TestAWrittenProgramCanBeExecutedWhileOthersStart(t *testing.T) {
	dir := t.TempDir()
	for n := range 8 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			for k := range 30 {
				path := filepath.Join(dir, fmt.Sprintf("p%d-%d", n, k))
				tooltest.WriteProgram(t, path, "#!/bin/sh\necho hi\n")
				if out, err := exec.CommandContext(t.Context(), path).CombinedOutput(); err != nil || string(out) != "hi\n" {
					t.Fatalf("%q, %v", out, err)
				}
			}
		})
	}
}
