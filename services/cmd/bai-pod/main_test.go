//go:build linux

package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/clustertest"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "bai-pod-*")
	if err == nil {
		defer os.RemoveAll(dir) //nolint:errcheck // the system's
		binary, err = clustertest.BuildPod(dir)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// run runs the program, and returns its output and its exit code.
func run(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), &out, &errs
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestTheProgramIsSmall(t *testing.T) {
	t.Parallel()
	info, err := os.Stat(binary)
	if err != nil || info.Size() > 20<<20 {
		t.Errorf("%d bytes (%v), want 20 MiB at most", info.Size(), err)
	}
}

func TestAWrongCommandLineIsSaid(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"no command":                     {},
		`no command "x"`:                 {"x"},
		"no command after --":            {"exec"},
		"exec: no command after --":      {"exec", "--"},
		`"ls" is no option`:              {"exec", "ls"},
		`"--scripted" is no option`:      {"exec", "--scripted", "--", "ls"},
		"install wants one place":        {"install"},
		"mtu wants a size":               {"mtu"},
		"hosts wants the domains":        {"hosts"},
		`"9k" is not the size of`:        {"mtu", "9k"},
		"supervise wants one directory":  {"supervise", "a", "b"},
		"exec: no command after --\n\n":  {"exec", "--", ""},
		"bai-pod exec [--script[=INTERP": {"nonsense"},
	} {
		_, stderr, code := run(t, nil, args...)
		if code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d and %q, want 2 and %q", args, code, stderr, want)
		}
	}
	for want, env := range map[string]string{`BAI_GRACE: "x" is not a time`: "BAI_GRACE=x", `BAI_MAX_LOG: "-1" is not a number`: "BAI_MAX_LOG=-1"} {
		if _, stderr, code := run(t, []string{env}, "exec", "--", "true"); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d and %q, want 1 and %q", env, code, stderr, want)
		}
	}
}

func TestInstallCopiesTheProgram(t *testing.T) {
	t.Parallel()
	dst := filepath.Join(t.TempDir(), "deep", "er", "bai-pod")
	for range 2 { // repeating it changes nothing
		if _, stderr, code := run(t, nil, "install", dst); code != 0 {
			t.Fatal(stderr)
		}
	}
	want, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(dst)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes are not the program's %d (%v)", len(got), len(want), err)
	}
	if info, err := os.Stat(dst); err != nil || info.Mode() != 0o755 {
		t.Errorf("it is %v (%v)", info.Mode(), err)
	}
	entries, err := os.ReadDir(filepath.Dir(dst))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"bai-emit", "bai-pod", "bai-pod-ship"}, names); diff != "" {
		t.Errorf("what there is (-want +got):\n%s", diff)
	}
	if _, stderr, code := run(t, nil, "install", "/proc/nowhere/bai-pod"); code != 1 || !strings.Contains(stderr, "install /proc/nowhere/bai-pod") {
		t.Errorf("at a place that cannot be: exit code %d and %q", code, stderr)
	}
}

func TestExecRunsACommandUnderTheSettingsOfItsEnvironment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stdout, _, code := run(t, []string{pod.EnvDir + "=" + dir, pod.EnvMaxLog + "=3"}, "exec", "--script=sh -eu", "--", "echo $1; exit 5", "word")
	if stdout != "word\n" || code != 5 {
		t.Errorf("exit code %d and %q", code, stdout)
	}
	if b, err := os.ReadFile(pod.PathIn(dir, pod.Output)); err != nil || len(b) != pod.RecordHeader+len("word\n") {
		t.Errorf("the output is %d bytes (%v)", len(b), err)
	}
}

func TestACommandFindsTheProgramThatEmitsBehindItsOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, file := pod.PathIn(dir, pod.Binary), filepath.Join(dir, "metrics")
	if _, stderr, code := run(t, nil, "install", program); code != 0 {
		t.Fatal(stderr)
	}
	for path, want := range map[string]string{
		"PATH=/usr/bin:/bin": "/usr/bin:/bin:" + dir + "/bin",
		"PATH=":              "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:" + dir + "/bin",
		"OTHER=":             "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:" + dir + "/bin",
	} {
		for _, command := range [][]string{{"--", "bai-emit", "a=1"}, {"--script", "--", `bai-emit a=1; printf %s "$PATH"`}} {
			cmd := exec.CommandContext(t.Context(), program, append([]string{"exec"}, command...)...)
			cmd.Env = []string{pod.EnvDir + "=" + dir, pod.EnvFile + "=" + file, path}
			out, err := cmd.Output()
			if err != nil || command[0] == "--script" && string(out) != want {
				t.Errorf("%s: %q: %v, and its PATH is %q, want %q", path, command, err, out, want)
			}
		}
	}
	if b, err := os.ReadFile(file); err != nil || strings.Count(string(b), `{"a": 1, "@time": `) != 6 {
		t.Errorf("emitted %q (%v), want 6 lines", b, err)
	}
}

func TestASupervisorWithoutALockRunsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock := filepath.Join(dir, "lock")
	for _, err := range []error{
		os.WriteFile(lock, nil, 0o600),
		shimapi.Write(filepath.Join(dir, shimapi.PodFile), shimapi.Pod{State: filepath.Join(dir, "state"), Lock: lock}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, stderr, code := run(t, nil, "supervise", dir); code != 1 || !strings.Contains(stderr, "take its lock") {
		t.Errorf("exit code %d and %q", code, stderr)
	}
	if _, stderr, code := run(t, nil, "supervise", "--probe", t.TempDir()); code != 1 || !strings.Contains(stderr, "not in namespaces of its own") {
		t.Errorf("a probe on the machine itself: exit code %d and %q", code, stderr)
	}
}

// A signal that got lost would let the container go on until the pod's grace is over.
func TestSIGTERMEndsAContainerThatWaitsWheneverItComes(t *testing.T) {
	for delay := time.Duration(0); delay < 20*time.Millisecond; delay += 200 * time.Microsecond {
		cmd := exec.CommandContext(t.Context(), binary+pod.ShipSuffix, "await", "http://127.0.0.1:1/")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = cmd.Wait() // it ends by the signal, or with an error
		}()
		<-time.After(delay)
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
		case <-time.After(5 * time.Minute):
			_ = cmd.Process.Kill()
			t.Fatalf("a container that was sent SIGTERM %s after its start still waits", delay)
		}
	}
}
