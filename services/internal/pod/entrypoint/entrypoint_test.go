//go:build linux

package entrypoint_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/entrypoint"
)

// envSettings makes this program be a wrapper.
const envSettings = "BAI_TEST_WRAP"

// readyFile is what a wrapper creates, in its directory, when its command is ready.
const readyFile = "is-ready"

func TestMain(m *testing.M) {
	if s := os.Getenv(envSettings); s != "" {
		os.Exit(runAsEntrypoint(s))
	}
	os.Exit(m.Run())
}

func runAsEntrypoint(text string) int {
	var s entrypoint.Settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 99
	}
	s.OnReady = func() error { return os.WriteFile(filepath.Join(s.Dir, readyFile), nil, 0o600) }
	s.OnStart = func(int, entrypoint.RunFunc) (func(), func(context.Context, pod.Exit)) {
		return func() {}, func(ctx context.Context, _ pod.Exit) { holdEnd(ctx, s.Dir) }
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	code, err := entrypoint.Run(s, signals)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 98
	}
	return code
}

// holdFile in the directory of a wrapper holds the end of OnStart up until its context is done. Before that, the file is removed.
const holdFile = "hold-end"

func holdEnd(ctx context.Context, dir string) {
	if os.Remove(filepath.Join(dir, holdFile)) == nil {
		<-ctx.Done()
	}
}

// entrypointProcess is one wrapper.
type entrypointProcess struct {
	*exec.Cmd

	dir            string
	stdout, stderr buffer
}

// buffer is a bytes.Buffer that may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func command(t *testing.T, s entrypoint.Settings) *entrypointProcess {
	t.Helper()
	if s.Dir == "" {
		s.Dir = t.TempDir()
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	r := &entrypointProcess{dir: s.Dir, Cmd: exec.CommandContext(t.Context(), os.Args[0])} //nolint:gosec // this test
	r.Env = append(os.Environ(), envSettings+"="+string(text))
	r.Stdout, r.Stderr = &r.stdout, &r.stderr
	r.WaitDelay = 20 * time.Second
	return r
}

// start starts a wrapper, and waits until its command has written something.
func start(t *testing.T, s entrypoint.Settings) *entrypointProcess {
	t.Helper()
	r := command(t, s)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	r.waitUntil(t, "the command runs", func() bool { return len(r.file(t, pod.Output)) > 0 })
	return r
}

func (r *entrypointProcess) file(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(pod.PathIn(r.dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return b
}

func (r *entrypointProcess) waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not in time: %s; output %q %q", what, r.stdout.String(), r.stderr.String())
		}
	}
}

// waitForExit waits for the entrypoint, and returns the command's exit as it wrote it.
// The entrypoint's own exit code must be the same.
func (r *entrypointProcess) waitForExit(t *testing.T) pod.Exit {
	t.Helper()
	if r.Process == nil {
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
	}
	_ = r.Wait()
	var e pod.Exit
	if err := json.Unmarshal(r.file(t, pod.ExitFile), &e); err != nil {
		t.Fatalf("%v; the wrapper said %q", err, r.stderr.String())
	}
	if got := r.ProcessState.ExitCode(); got != e.Code {
		t.Errorf("the wrapper exits with %d, the command with %d", got, e.Code)
	}
	if e.Started.IsZero() || e.Ended.Before(e.Started) {
		t.Errorf("it ran from %s to %s", e.Started, e.Ended)
	}
	return e
}

// records returns the recorded output, as "1:" or "2:" and the data, where adjoining data
// of one stream are joined.
func (r *entrypointProcess) records(t *testing.T) (all string, stdout, stderr []byte) {
	t.Helper()
	var (
		b    = r.file(t, pod.Output)
		text strings.Builder
		last = byte(0)
		at   int64
	)
	for len(b) > 0 {
		rec, n, err := pod.ReadRecord(b)
		if err != nil || n == 0 {
			t.Fatalf("%d bytes at the end are no record: %v", len(b), err)
		}
		if rec.Time < at {
			t.Errorf("a record of %d comes after one of %d", rec.Time, at)
		}
		at, b = rec.Time, b[n:]
		stream := byte('1')
		if rec.Err {
			stream = '2'
			stderr = append(stderr, rec.Data...)
		} else {
			stdout = append(stdout, rec.Data...)
		}
		if stream != last {
			text.WriteString(string(stream) + ":")
		}
		last = stream
		text.Write(rec.Data)
	}
	return text.String(), stdout, stderr
}

func sh(script string) []string { return []string{"sh", "-c", script} }

// endWithoutCollector runs a command whose collector does not run, until the entrypoint says that it waits. It returns the collector's FIFO.
func endWithoutCollector(t *testing.T, timeout time.Duration) (r *entrypointProcess, fifo string) {
	t.Helper()
	dir := t.TempDir()
	fifo = pod.PathIn(dir, pod.FIFO)
	if err := os.MkdirAll(filepath.Dir(fifo), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	r = command(t, entrypoint.Settings{Dir: dir, Args: sh("echo last; exit 3"), RestartTimeout: timeout})
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	r.waitUntil(t, "it says that it waits", func() bool { return strings.Contains(r.stderr.String(), "the collector does not run") })
	return r, fifo
}

// wantNoExit checks that the exit is not written: the wait for a collector has not ended.
func (r *entrypointProcess) wantNoExit(t *testing.T) {
	t.Helper()
	if len(r.file(t, pod.ExitFile)) > 0 {
		t.Error("the exit is written already")
	}
}

func TestTheEndWaitsUntilAKilledCollectorRunsAgain(t *testing.T) {
	t.Parallel()
	r, fifo := endWithoutCollector(t, time.Hour)
	r.wantNoExit(t)
	f, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if end := r.waitForExit(t); end.Code != 3 {
		t.Errorf("exit code %d", end.Code)
	}
}

func TestTheEndWaitsForNoCollectorWhereThePodHasToEnd(t *testing.T) {
	t.Parallel()
	r, _ := endWithoutCollector(t, time.Hour)
	r.wantNoExit(t)
	if err := r.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if end := r.waitForExit(t); end.Code != 3 || !strings.Contains(r.stderr.String(), "output may be lost") {
		t.Errorf("exit code %d, and it says %q", end.Code, r.stderr.String())
	}
}

func TestTheEndWaitsForACollectorOnlySoLong(t *testing.T) {
	t.Parallel()
	r, _ := endWithoutCollector(t, 50*time.Millisecond)
	if end := r.waitForExit(t); end.Code != 3 || !strings.Contains(r.stderr.String(), "was not restarted within 50ms") {
		t.Errorf("exit code %d, and it says %q", end.Code, r.stderr.String())
	}
}

func TestACommandsEndIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "plain"), "echo no", 0o644)
	write(t, filepath.Join(dir, "script"), "#!/bin/sh\necho \"$1\"\nexit 5", 0o644)
	write(t, filepath.Join(dir, "strict"), "#! /bin/sh -e\nfalse\necho no", 0o600)
	write(t, filepath.Join(dir, "nobody"), "#!/no/such/interpreter\n", 0o644)
	write(t, filepath.Join(dir, "garbage"), "\x7fELF no", 0o755)
	write(t, filepath.Join(dir, "orphan"), "#!/no/such/interpreter\n", 0o755)
	for name, test := range map[string]struct {
		settings entrypoint.Settings
		want     pod.Exit
		records  string
	}{
		"it ends well":                       {entrypoint.Settings{Args: []string{"true"}}, pod.Exit{}, ""},
		"it fails":                           {entrypoint.Settings{Args: sh("exit 3")}, pod.Exit{Code: 3}, ""},
		"it is killed":                       {entrypoint.Settings{Args: sh("kill -9 $$")}, pod.Exit{Code: 137, Signal: "SIGKILL"}, ""},
		"it is told to end":                  {entrypoint.Settings{Args: sh("kill $$")}, pod.Exit{Code: 143, Signal: "SIGTERM"}, ""},
		"it crashes":                         {entrypoint.Settings{Args: sh("kill -SEGV $$")}, pod.Exit{Code: 139, Signal: "SIGSEGV"}, ""},
		"it does not exist":                  {entrypoint.Settings{Args: []string{"no-such-command"}}, pod.Exit{Code: 127, Problem: "no such file or directory"}, "2:bai: cannot start \"no-such-command\": no such file or directory\n"},
		"its place does not exist":           {entrypoint.Settings{Args: []string{"/no/such/command"}}, pod.Exit{Code: 127, Problem: "no such file or directory"}, "2:bai: cannot start \"/no/such/command\": no such file or directory\n"},
		"it is a directory":                  {entrypoint.Settings{Args: []string{"/"}}, pod.Exit{Code: 126, Problem: "is a directory"}, "2:bai: cannot start \"/\": is a directory\n"},
		"it may not be executed":             {entrypoint.Settings{Args: []string{dir + "/plain"}}, pod.Exit{Code: 126, Problem: "it is not executable: chmod +x it, or put its interpreter before it"}, "2:bai: cannot start \"" + dir + "/plain\": it is not executable: chmod +x it, or put its interpreter before it\n"},
		"a script that may not be executed":  {entrypoint.Settings{Args: []string{dir + "/script", "a b"}}, pod.Exit{Code: 5}, "1:a b\n"},
		"and one with an argument":           {entrypoint.Settings{Args: []string{dir + "/strict"}}, pod.Exit{Code: 1}, ""},
		"and one for a program that is away": {entrypoint.Settings{Args: []string{dir + "/nobody"}}, pod.Exit{Code: 126, Problem: "its interpreter: no such file or directory"}, "2:bai: cannot start \"" + dir + "/nobody\": its interpreter: no such file or directory\n"},
		"it is no program":                   {entrypoint.Settings{Args: []string{dir + "/garbage"}}, pod.Exit{Code: 126, Problem: "exec format error"}, "2:bai: cannot start \"" + dir + "/garbage\": exec format error\n"},
		"its interpreter does not exist":     {entrypoint.Settings{Args: []string{dir + "/orphan"}}, pod.Exit{Code: 126, Problem: "its interpreter: no such file or directory"}, "2:bai: cannot start \"" + dir + "/orphan\": its interpreter: no such file or directory\n"},
		"it writes":                          {entrypoint.Settings{Args: sh("echo out; echo err >&2")}, pod.Exit{}, "1:out\n2:err\n"},
		"it writes without a line feed":      {entrypoint.Settings{Args: []string{"printf", "x"}}, pod.Exit{}, "1:x"},
		"it writes what is not text":         {entrypoint.Settings{Args: []string{"printf", `\377\000\n`}}, pod.Exit{}, "1:\xff\x00\n"},
		"it reads nothing":                   {entrypoint.Settings{Args: []string{"cat"}}, pod.Exit{}, ""},
		"a script for the shell":             {entrypoint.Settings{Script: true, Args: []string{"echo $1\nexit 4", "a b"}}, pod.Exit{Code: 4}, "1:a b\n"},
		"a script that names its program":    {entrypoint.Settings{Script: true, Args: []string{"#!/usr/bin/awk -f\nBEGIN { print \"awk\" }"}}, pod.Exit{}, "1:awk\n"},
		"a script for a program":             {entrypoint.Settings{Script: true, Shell: []string{"sh", "-e"}, Args: []string{"false\necho no"}}, pod.Exit{Code: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := command(t, test.settings)
			e := r.waitForExit(t)
			e.Started, e.Ended, e.User, e.System, e.MaxRSS = time.Time{}, time.Time{}, 0, 0, 0
			if diff := cmp.Diff(test.want, e); diff != "" {
				t.Errorf("end (-want +got):\n%s", diff)
			}
			if all, _, _ := r.records(t); all != test.records {
				t.Errorf("records %q, want %q", all, test.records)
			}
		})
	}
}

func TestOutputThatNobodyReadsIsDroppedAfterAWaitAndCounted(t *testing.T) {
	t.Parallel()
	const bytes, lines = 6_888_896, 1_000_000 // of seq
	r := command(t, entrypoint.Settings{MaxBacklog: 1 << 20, BacklogTimeout: time.Millisecond, Args: sh("seq 1000000")})
	e := r.waitForExit(t)
	_, stdout, _ := r.records(t)
	if kept := int64(len(stdout)); e.Code != 0 || kept < 1<<19 || kept > 2<<20 || e.Dropped != bytes-kept {
		t.Errorf("%d bytes are kept: %+v", kept, e)
	}
	if want := lines - int64(strings.Count(string(stdout), "\n")); e.DroppedLines != want {
		t.Errorf("%d lines are dropped, want %d", e.DroppedLines, want)
	}
}

// reader reads records as the collector does, and releases the disk space of the records
// that it has read.
type reader struct {
	strings.Builder

	at int64
}

func (r *reader) read(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if os.IsNotExist(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // nothing of it is left to write
	all, err := io.ReadAll(io.NewSectionReader(f, r.at, 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	for {
		record, n, err := pod.ReadRecord(all)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		r.Write(record.Data)
		all, r.at = all[n:], r.at+int64(n)
	}
	if err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, max(1, r.at)); err != nil { //nolint:gosec // a descriptor
		t.Fatal(err)
	}
}

func TestOutputWaitsForItsReader(t *testing.T) {
	t.Parallel()
	r := command(t, entrypoint.Settings{MaxBacklog: 1 << 20, BacklogTimeout: time.Hour, Args: sh("seq 1000000")})
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	var got reader
	r.waitUntil(t, "all is read", func() bool {
		got.read(t, pod.PathIn(r.dir, pod.Output))
		return strings.HasSuffix(got.String(), "\n1000000\n")
	})
	if e := r.waitForExit(t); e.Dropped != 0 || got.Len() != 6_888_896 {
		t.Errorf("%d bytes were read: %+v", got.Len(), e)
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestOutputIsRecordedInOrderAndPassedOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	recorded := `n() { wc -c < ` + pod.PathIn(dir, pod.Output) + `; }; recorded() { until [ $(n) -gt $before ]; do sleep 0.01; done; before=$(n); }; before=$(n); `
	r := command(t, entrypoint.Settings{Dir: dir, Args: sh(recorded + "for i in 1 2 3 4 5 6; do echo o$i; recorded; echo e$i >&2; recorded; done")})
	r.waitForExit(t)
	all, stdout, stderr := r.records(t)
	if want := "1:o1\n2:e1\n1:o2\n2:e2\n1:o3\n2:e3\n1:o4\n2:e4\n1:o5\n2:e5\n1:o6\n2:e6\n"; all != want {
		t.Errorf("records %q, want %q", all, want)
	}
	if string(stdout) != r.stdout.String() || string(stderr) != r.stderr.String() {
		t.Errorf("passed on %q and %q", r.stdout.String(), r.stderr.String())
	}
}

func TestALotOfOutputIsKeptWhole(t *testing.T) {
	t.Parallel()
	data := make([]byte, 30<<20)
	for i := range data {
		data[i] = byte(rand.Uint32()) //nolint:gosec // any byte
	}
	path := filepath.Join(t.TempDir(), "data")
	write(t, path, string(data), 0o600)
	r := command(t, entrypoint.Settings{Args: sh("cat " + path + "; cat " + path + " >&2")})
	r.waitForExit(t)
	_, stdout, stderr := r.records(t)
	for name, got := range map[string][]byte{"stdout": stdout, "stderr": stderr, "passed on": []byte(r.stdout.String()), "passed on as errors": []byte(r.stderr.String())} {
		if !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes are not the %d that were written", name, len(got), len(data))
		}
	}
}

func TestSignalsAreHandedOn(t *testing.T) {
	t.Parallel()
	const loop = "; echo ready; while true; do sleep 0.01; done"
	for name, test := range map[string]struct {
		settings entrypoint.Settings
		signal   syscall.Signal
		want     int
	}{
		"SIGTERM ends the command":               {entrypoint.Settings{Args: sh("trap 'exit 9' TERM" + loop)}, syscall.SIGTERM, 9},
		"SIGINT ends the command":                {entrypoint.Settings{Args: sh("trap 'exit 9' INT" + loop)}, syscall.SIGINT, 9},
		"SIGHUP reaches it":                      {entrypoint.Settings{Args: sh("trap 'exit 9' HUP" + loop)}, syscall.SIGHUP, 9},
		"SIGQUIT reaches it":                     {entrypoint.Settings{Args: sh("trap 'exit 9' QUIT" + loop)}, syscall.SIGQUIT, 9},
		"SIGUSR1 reaches it":                     {entrypoint.Settings{Args: sh("trap 'exit 9' USR1" + loop)}, syscall.SIGUSR1, 9},
		"SIGUSR2 reaches it":                     {entrypoint.Settings{Args: sh("trap 'exit 9' USR2" + loop)}, syscall.SIGUSR2, 9},
		"SIGTERM reaches its children":           {entrypoint.Settings{Args: sh("trap '' TERM; (trap - TERM; exec sh -c 'echo ready; exec sleep 100'); exit 8")}, syscall.SIGTERM, 8},
		"SIGUSR1 reaches not its children":       {entrypoint.Settings{Args: sh("trap 'kill $child; wait $child; [ $? = 143 ] && exit 9; exit 8' USR1; sleep 100 & child=$!; echo ready; wait; exit 7")}, syscall.SIGUSR1, 9},
		"one that ignores SIGTERM is killed":     {entrypoint.Settings{Args: sh("trap '' TERM" + loop), Grace: 50 * time.Millisecond}, syscall.SIGTERM, 137},
		"one that ignores SIGINT is killed":      {entrypoint.Settings{Args: sh("trap '' INT" + loop), Grace: 50 * time.Millisecond}, syscall.SIGINT, 137},
		"one that does not know SIGTERM ends so": {entrypoint.Settings{Args: sh("echo ready; exec sleep 100")}, syscall.SIGTERM, 143},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, test.settings)
			if err := r.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			if e := r.waitForExit(t); e.Code != test.want {
				t.Errorf("it ends with %d (%s), want %d", e.Code, e.Signal, test.want)
			}
		})
	}
}

func TestADaemonThatKeepsTheOutputOpenHoldsNothingUp(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"and is silent":      "echo first; sleep 100 & exit 5",
		"and writes on":      "(while true; do echo more; done) & echo first; exit 5",
		"in its own session": "echo first; setsid sleep 60.25 & exit 5",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := command(t, entrypoint.Settings{Args: sh(script), Linger: 100 * time.Millisecond})
			r.WaitDelay = time.Second // its standard output is also the pipe that this test reads
			began := time.Now()
			if e := r.waitForExit(t); e.Code != 5 {
				t.Errorf("it ends with %d", e.Code)
			}
			if took := time.Since(began); took > 50*time.Second {
				t.Errorf("it took %s", took)
			}
			if _, stdout, _ := r.records(t); !bytes.Contains(stdout, []byte("first\n")) {
				t.Errorf("what the command wrote is not in %d bytes", len(stdout))
			}
		})
	}
}

func TestWhatACommandLeavesInItsGroupIsKilled(t *testing.T) {
	t.Parallel()
	r := command(t, entrypoint.Settings{Args: sh("sleep 100 >/dev/null 2>&1 & echo $!"), Linger: 50 * time.Millisecond})
	r.waitForExit(t)
	left, err := strconv.Atoi(strings.TrimSpace(r.stdout.String()))
	if err != nil {
		t.Fatal(err)
	}
	r.waitUntil(t, "what was left is gone", func() bool { return gone(left) })
}

// gone reports whether a process has ended.
func gone(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || bytes.Contains(b, []byte(") Z "))
}

func TestACommandEndsWithItsWrapper(t *testing.T) {
	t.Parallel()
	r := start(t, entrypoint.Settings{Args: sh("echo $$; exec sleep 100")})
	r.waitUntil(t, "its ID is passed on", func() bool { _, out, _ := r.records(t); return bytes.HasSuffix(out, []byte("\n")) })
	_, out, _ := r.records(t)
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.Wait()
	r.waitUntil(t, "the command is gone", func() bool { return gone(pid) })
}

func TestAReaderThatGoesAwayChangesNothing(t *testing.T) {
	t.Parallel()
	r := command(t, entrypoint.Settings{Args: sh("for i in 1 2 3; do echo $i; echo $i >&2; sleep 0.02; done; exit 6")})
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = from.Close()
	r.Stdout, r.Stderr = to, to
	if e := r.waitForExit(t); e.Code != 6 {
		t.Errorf("it ends with %d", e.Code)
	}
	if _, stdout, stderr := r.records(t); string(stdout) != "1\n2\n3\n" || string(stderr) != "1\n2\n3\n" {
		t.Errorf("records %q and %q", stdout, stderr)
	}
}

func TestWhatTheCommandUsedIsMeasured(t *testing.T) {
	t.Parallel()
	e := command(t, entrypoint.Settings{Args: sh("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")}).waitForExit(t)
	if e.User+e.System < 0.01 || e.User+e.System > 20 || e.MaxRSS < 100<<10 || e.MaxRSS > 1<<30 {
		t.Errorf("it used %gs + %gs and %d bytes", e.User, e.System, e.MaxRSS)
	}
}

func TestAFullDiskHoldsTheCommandUpAndLosesNothing(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Fatal("a disk that is full must be mounted, which needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(dir, "filler")
	write(t, filler, strings.Repeat("x", 700<<10), 0o600)
	r := command(t, entrypoint.Settings{Dir: dir, Args: sh("seq 1 100000; seq 1 100000 >&2; exit 3")})
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	r.waitUntil(t, "the disk is full", func() bool {
		var st unix.Statfs_t
		return unix.Statfs(dir, &st) == nil && st.Bfree == 0
	})
	if b := r.file(t, pod.ExitFile); len(b) > 0 {
		t.Errorf("it has ended on a full disk: %s", b)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, "size=20m"); err != nil {
		t.Fatal(err)
	}
	if e := r.waitForExit(t); e.Code != 3 || e.Dropped != 0 {
		t.Errorf("it ended as %+v", e)
	}
	var want bytes.Buffer
	for i := range 100000 {
		_, _ = fmt.Fprintln(&want, i+1)
	}
	_, stdout, stderr := r.records(t)
	if !bytes.Equal(stdout, want.Bytes()) || !bytes.Equal(stderr, want.Bytes()) {
		t.Errorf("%d and %d bytes of %d were recorded", len(stdout), len(stderr), want.Len())
	}
	if n := strings.Count(r.stderr.String(), "bai: the disk is full"); n > 1 { // the room may come before it is missed
		t.Errorf("it was said %d times that the disk is full", n)
	}
}

// smallDisk is a folder on a disk of its own with 64 KiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestADiskThatIsFullAtTheEndHoldsTheEndUp(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t)
	r := command(t, entrypoint.Settings{Dir: dir, Args: sh("dd if=/dev/zero of=" + dir + "/filler bs=4096 count=100 2>/dev/null; exit 0")})
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	r.waitUntil(t, "it is held up", func() bool { return strings.Contains(r.stderr.String(), "the disk is full") })
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		t.Fatal(err)
	}
	if e := r.waitForExit(t); e.Code != 0 {
		t.Errorf("it ended as %+v", e)
	}
}

// noRoom is more than any disk has free.
const noRoom = 1 << 62

func TestOutputWaitsForADiskThatIsFullUntilTheCommandHasToEnd(t *testing.T) {
	t.Parallel()
	const bytes, lines = 6_888_896, 1_000_000 // of seq
	for name, s := range map[string]entrypoint.Settings{
		"for as long as it may take to end":        {Grace: 50 * time.Millisecond},
		"however long the command may take to end": {Grace: time.Hour, DiskTimeout: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.MinFree, s.Args = noRoom, sh("seq 1000000; echo done")
			r := command(t, s)
			if err := r.Start(); err != nil {
				t.Fatal(err)
			}
			r.waitUntil(t, "it waits for the disk", func() bool { return strings.Contains(r.stderr.String(), "the disk is full") })
			if err := r.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			e := r.waitForExit(t)
			_, stdout, _ := r.records(t)
			if kept := len(stdout); kept == 0 || kept > 1<<20 || e.Dropped == 0 || e.Dropped > bytes || e.DroppedLines == 0 || e.DroppedLines > lines || !e.Stopped {
				t.Errorf("%d bytes are kept: %+v", kept, e)
			}
		})
	}
}

func TestArtifactsThatADiskHasNoRoomForAreNotKept(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "result")
	r := command(t, entrypoint.Settings{MinFree: noRoom, Artifacts: []pod.Artifact{{Path: file}}, Args: sh("echo 42 > " + file)})
	if e := r.waitForExit(t); e.Code != 0 || e.Stopped {
		t.Errorf("it ended as %+v", e)
	}
	var k pod.ArtifactList
	if err := json.Unmarshal(r.file(t, pod.ArtifactsFile), &k); err != nil {
		t.Fatal(err)
	}
	if len(k.Files) != 0 || len(k.Notices) != 1 || !strings.Contains(k.Notices[0], `result" is not kept: the platform's disk is full`) {
		t.Errorf("kept %+v", k)
	}
}

func TestACommandThatFailsLeavesItsLastWordsWhereItLeftNone(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ script, want string }{
		"of both streams":        {"printf 'hello data'; sleep 0.1; echo 'ls: cannot access' >&2; exit 3", "hello data\nls: cannot access\n"},
		"its own, where it did":  {`echo mine >"$MESSAGE"; echo other; exit 3`, "mine\n"},
		"none where all is well": {"echo hello", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			message := filepath.Join(t.TempDir(), "message")
			write(t, message, "", 0o600)
			r := command(t, entrypoint.Settings{MessagePath: message, Args: sh("MESSAGE=" + message + "; " + tt.script)})
			r.waitForExit(t)
			if got, err := os.ReadFile(message); err != nil || string(got) != tt.want {
				t.Errorf("it left %q (%v), want %q", got, err, tt.want)
			}
		})
	}
}

// TestAFullDiskHoldsUpNothingBeyondTheGraceInAPodThatHasToEnd has a disk that is full before the command starts, and one that the command
// fills. Nothing can be written on it, so the exit is not recorded, and Run says so.
func TestAFullDiskHoldsUpNothingBeyondTheGraceInAPodThatHasToEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		filler   int // bytes
		settings entrypoint.Settings
	}{
		"before the command": {1 << 20, entrypoint.Settings{Script: true, Args: []string{"exit 0"}}},
		"at its end":         {0, entrypoint.Settings{Args: sh("dd if=/dev/zero of=$BAI_TEST_DIR/filler bs=4096 count=100 2>/dev/null; exit 0")}},
		"with results": {0, entrypoint.Settings{
			Args:    sh("echo '{\"a\": 1}'; dd if=/dev/zero of=$BAI_TEST_DIR/filler bs=4096 count=100 2>/dev/null; exit 0"),
			Parsers: []pod.Parser{{Kind: "json"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := smallDisk(t)
			if tt.filler > 0 {
				_ = os.WriteFile(filepath.Join(dir, "filler"), make([]byte, tt.filler), 0o600) // until the disk is full
			}
			s := tt.settings
			s.Dir, s.Grace = dir, 50*time.Millisecond
			r := command(t, s)
			r.Env = append(r.Env, "BAI_TEST_DIR="+dir)
			if err := r.Start(); err != nil {
				t.Fatal(err)
			}
			r.waitUntil(t, "it is held up", func() bool { return strings.Contains(r.stderr.String(), "the disk is full") })
			if err := r.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			r.wantEnd(t)
			if text := r.stderr.String(); !strings.Contains(text, "write how the command ended: the pod has to end: ") {
				t.Errorf("it says %q", text)
			}
		})
	}
}

// wantEnd waits for the entrypoint's own end.
func (r *entrypointProcess) wantEnd(t *testing.T) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		_ = r.Process.Kill()
		<-ended
		t.Fatalf("it does not end; it says %q", r.stderr.String())
	}
}

func TestTheEndOfOnStartIsCutShortInAPodThatHasToEnd(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"by a signal that ended the command": "echo ready; exec sleep 100",
		"by one that comes after it":         "echo ready; exit 0",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, holdFile), "", 0o600)
			r := start(t, entrypoint.Settings{Dir: dir, Args: sh(script)})
			if strings.Contains(script, "exit") {
				r.waitUntil(t, "its end begins", func() bool { return !exists(dir, holdFile) })
			}
			r.signal(t, syscall.SIGTERM)
			r.wantEnd(t)
			if text := r.file(t, pod.ExitFile); !bytes.Contains(text, []byte(`"stopped":true`)) {
				t.Errorf("the exit is %s", text)
			}
		})
	}
}
