//go:build linux

package entrypoint_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/entrypoint"
)

// stepExit waits for the entrypoint of a step, and returns its exit code and the exit that it wrote, without times.
func (r *entrypointProcess) stepExit(t *testing.T, name string) (int, pod.Exit) {
	t.Helper()
	if r.Process == nil {
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
	}
	_ = r.Wait()
	var e pod.Exit
	if err := json.Unmarshal(r.file(t, pod.StepExit(name)), &e); err != nil {
		t.Fatalf("%v; the wrapper said %q", err, r.stderr.String())
	}
	return r.ProcessState.ExitCode(), pod.Exit{Code: e.Code, Skipped: e.Skipped}
}

// oneStep is a step, and how it ends.
type oneStep struct {
	script  string
	limit   time.Duration
	want    int
	message string // its termination message
}

func (tt oneStep) run(t *testing.T) {
	t.Helper()
	out, message := t.TempDir(), filepath.Join(t.TempDir(), "message")
	write(t, message, "", 0o600)
	r := command(t, entrypoint.Settings{
		Args: sh("OUT=" + out + "; " + tt.script), MessagePath: message, Grace: 100 * time.Millisecond,
		Step: entrypoint.Step{Name: "one", Limit: tt.limit, Output: out},
	})
	code, end := r.stepExit(t, "one")
	if diff := cmp.Diff(pod.Exit{Code: tt.want}, end); code != tt.want || diff != "" {
		t.Errorf("it ended with %d, want %d: %s", code, tt.want, diff)
	}
	if got, err := os.ReadFile(message); err != nil || string(got) != strings.ReplaceAll(tt.message, "$OUT", out) {
		t.Errorf("it left %q (%v), want %q", got, err, tt.message)
	}
	if strings.Contains(tt.script, "hello") && !strings.Contains(string(r.file(t, pod.StepOutput("one"))), "hello") {
		t.Error("its output is not recorded")
	}
	if len(r.file(t, pod.Output))+len(r.file(t, pod.ExitFile)) > 0 {
		t.Error("it wrote files of the benchmark")
	}
}

func TestAStepHasFilesOfItsOwnAndALimit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]oneStep{
		"that succeeds":              {"echo hello", time.Hour, 0, ""},
		"that fails":                 {"echo hello; exit 3", time.Hour, 3, "hello\n"},
		"that takes too long":        {"sleep 600", 50 * time.Millisecond, pod.StepTimedOut, "timed out after 50ms (deadline)"},
		"that does not care":         {"trap '' TERM; while :; do sleep 0.1; done", 50 * time.Millisecond, pod.StepTimedOut, "timed out after 50ms (deadline)"},
		"with a link for its output": {"ln -s /etc/passwd $OUT/x", time.Hour, pod.StepOutputRefused, "its output is refused: $OUT/x is neither a file nor a folder"},
		"with a pipe for its output": {"mkdir $OUT/a; mkfifo $OUT/a/x", time.Hour, pod.StepOutputRefused, "its output is refused: $OUT/a/x is neither a file nor a folder"},
		"with too much output":       {"head -c 600000 /dev/zero >$OUT/x; cp $OUT/x $OUT/y", time.Hour, pod.StepOutputRefused, "its output is refused: $OUT holds more than 1.0 MiB"},
		"with all that it may leave": {"head -c 1048576 /dev/zero >$OUT/x", time.Hour, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.run(t)
		})
	}
}

// TestAStepThatIsSignalledBeforeItsDeadlineHasNotTimedOut has a grace that is longer than the time to the deadline.
func TestAStepThatIsSignalledBeforeItsDeadlineHasNotTimedOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := command(t, entrypoint.Settings{
		Dir: dir, Args: sh("trap '' TERM; kill -TERM $PPID; echo begun; while :; do sleep 0.1; done"), Grace: 5100 * time.Millisecond,
		Step: entrypoint.Step{Name: "one", Limit: 5 * time.Second},
	})
	if code, _ := r.stepExit(t, "one"); code != 137 {
		t.Errorf("it ended with %d, want 137", code)
	}
}

func TestAStepAfterAnotherCommandStartsOnceThatHasSucceeded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]stepsAfter{
		"one that succeeds":         {"read -r x; exit 0", false, pod.Exit{}},
		"one that fails":            {"read -r x; exit 3", false, pod.Exit{Skipped: true}},
		"one whose entrypoint dies": {"read -r x; exit 0", true, pod.Exit{Skipped: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.run(t)
		})
	}
}

// stepsAfter is a benchmark with two steps after it, and how both end.
type stepsAfter struct {
	script string // of the benchmark, whose standard input begins when all wait
	kill   bool   // its entrypoint is killed
	want   pod.Exit
}

func (tt stepsAfter) run(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	gate := filepath.Join(dir, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	later := command(t, entrypoint.Settings{Dir: dir, Args: sh("echo last"), Step: entrypoint.Step{Name: "two", After: "one"}})
	step := command(t, entrypoint.Settings{Dir: dir, Args: sh("echo ran"), Step: entrypoint.Step{Name: "one", After: pod.AfterBenchmark}})
	for _, r := range []*entrypointProcess{later, step} { // in the wrong order
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
	}
	benchmark := start(t, entrypoint.Settings{Dir: dir, Lock: true, Args: sh("echo begins; { " + tt.script + "; } <" + gate)})
	step.waitUntil(t, "the step waits", func() bool { return len(step.file(t, pod.StepLock("one"))) == 0 && exists(dir, pod.StepLock("one")) })
	if len(step.file(t, pod.StepOutput("one"))) > 0 {
		t.Error("the step did not wait")
	}
	if tt.kill {
		_ = benchmark.Process.Kill()
	} else {
		write(t, gate, "\n", 0o600)
	}
	tt.wantEnd(t, "one", step)
	tt.wantEnd(t, "two", later)
	_ = benchmark.Wait()
}

func (tt stepsAfter) wantEnd(t *testing.T, name string, r *entrypointProcess) {
	t.Helper()
	code, end := r.stepExit(t, name)
	if diff := cmp.Diff(tt.want, end, cmpopts.EquateEmpty()); diff != "" || code != 0 {
		t.Errorf("step %s ended with %d (-want +got):\n%s", name, code, diff)
	}
	if ran := len(r.file(t, pod.StepOutput(name))) > 0; ran == tt.want.Skipped {
		t.Errorf("step %s ran: %v", name, ran)
	}
}

func exists(dir, name string) bool {
	_, err := os.Lstat(pod.PathIn(dir, name))
	return err == nil
}

func TestAStepThatWaitsEndsAtASignal(t *testing.T) {
	t.Parallel()
	r := command(t, entrypoint.Settings{Args: sh("echo ran"), Step: entrypoint.Step{Name: "one", After: pod.AfterBenchmark}})
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	r.waitUntil(t, "it waits", func() bool { return exists(r.dir, pod.StepLock("one")) })
	_ = r.Process.Signal(syscall.SIGTERM)
	if code, end := r.stepExit(t, "one"); code != 143 || !end.Skipped {
		t.Errorf("it ended with %d and %+v", code, end)
	}
}

func TestAStepThatRunsAlwaysStartsAtTheFirstSignalAndNoOtherEndsIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := command(t, entrypoint.Settings{
		Dir: dir, Args: sh("echo begun; trap 'echo hurt' TERM; kill -TERM $PPID; kill -TERM $PPID; sleep 0.2; echo done"),
		Step: entrypoint.Step{Name: "one", Limit: time.Hour, Always: true},
	})
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	r.waitUntil(t, "it waits", func() bool { _, err := os.Stat(pod.PathIn(dir, pod.StepLock("one"))); return err == nil })
	if out := r.file(t, pod.StepOutput("one")); len(out) > 0 {
		t.Fatalf("it ran before the signal: %q", out)
	}
	if err := r.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, end := r.stepExit(t, "one"); code != 0 || end.Skipped {
		t.Errorf("it ended with %d: %+v", code, end)
	}
	if out := string(r.file(t, pod.StepOutput("one"))); !strings.Contains(out, "done") || strings.Contains(out, "hurt") {
		t.Errorf("it wrote %q", out)
	}
}

// alwaysStep is a step that runs always, in a pod with a file, and how it ends.
type alwaysStep struct {
	needs []string
	file  string // empty for none
	text  string
	want  pod.Exit
}

func (tt alwaysStep) run(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	if tt.file != "" {
		write(t, filepath.Join(dir, tt.file), tt.text, 0o600)
	}
	r := command(t, entrypoint.Settings{Dir: dir, Args: sh("echo ran"), Step: entrypoint.Step{Name: "one", Limit: time.Hour, Always: true, Needs: tt.needs}})
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	r.waitUntil(t, "it waits", func() bool { _, err := os.Stat(pod.PathIn(dir, pod.StepLock("one"))); return err == nil })
	if err := r.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	code, end := r.stepExit(t, "one")
	if diff := cmp.Diff(tt.want, end); diff != "" || code != tt.want.Code {
		t.Errorf("it ended with %d: %s", code, diff)
	}
	if ran := strings.Contains(string(r.file(t, pod.StepOutput("one"))), "ran"); ran == (tt.want.Skipped || tt.want.Code > 0) {
		t.Errorf("that its command ran is %v", ran)
	}
}

func TestAStepThatRunsAlwaysRunsOnceInAPodAndOnlyIfThoseThatItNeedsHaveSucceeded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]alwaysStep{
		"those that it needs have succeeded": {needs: []string{"a"}, file: pod.StepExit("a"), text: `{"code":0}`},
		"one has failed":                     {needs: []string{"a"}, file: pod.StepExit("a"), text: `{"code":1}`, want: pod.Exit{Skipped: true}},
		"one was skipped":                    {needs: []string{"a"}, file: pod.StepExit("a"), text: `{"skipped":true}`, want: pod.Exit{Skipped: true}},
		"one has not run":                    {needs: []string{"a"}, want: pod.Exit{Skipped: true}},
		"it was killed in this pod":          {file: pod.StepStarted("one"), want: pod.Exit{Code: pod.StepKilled}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.run(t)
		})
	}
}
