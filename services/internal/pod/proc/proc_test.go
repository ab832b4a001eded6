//go:build linux

package proc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/pod/proc"
)

// argLeaveGroup makes this program one that a signal to its process group does not reach, and that prints its process ID.
const argLeaveGroup = "leave-group"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == argLeaveGroup {
		group, err := syscall.Getpgid(os.Getppid())
		_, _ = fmt.Fprintln(os.Stdout, os.Getpid(), errors.Join(err, syscall.Setpgid(0, group)))
		end := make(chan os.Signal, 1)
		signal.Notify(end, syscall.SIGUSR1)
		<-end
	}
	os.Exit(m.Run())
}

// elsewhere checks that a starter's processes begin where its thread was brought.
func elsewhere(t *testing.T, table *proc.Table) {
	t.Helper()
	if _, err := table.Within(func() error { return io.ErrClosedPipe }); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("what cannot be entered: %v", err)
	}
	s, err := table.Within(func() error { return errors.Join(syscall.Unshare(syscall.CLONE_FS), syscall.Chdir("/usr")) })
	if err != nil {
		t.Fatal(err)
	}
	for where, starter := range map[string]*proc.Starter{"/usr": s, "elsewhere": table.Starter} {
		pid, err := starter.Start(proc.Command{Path: "/bin/sh", Args: []string{"sh", "-c", "test $(pwd -P) = /usr"}})
		if e := <-table.Ends(); err != nil || e.PID != pid || (e.Code == 0) != (where == "/usr") {
			t.Errorf("a process that begins %s: %+v (%v)", where, e, err)
		}
	}
}

// TestATable is one test: a process can have one table, and nothing else in it
// may wait for children.
func TestATable(t *testing.T) {
	t.Parallel()
	table := proc.NewTable()
	for name, test := range map[string]struct {
		script string
		code   int
		signal syscall.Signal
	}{
		"an exit code":                   {"exit 3", 3, 0},
		"a signal":                       {"kill -9 $$", 137, syscall.SIGKILL},
		"nothing of what it left behind": {"sh -c 'exit 5' & exit 0", 0, 0},
		"a group of its own":             {"test $(ps -o pgid= -p $$) = $$", 0, 0},
	} {
		_, e := run(t, table, proc.Command{Path: "/bin/sh", Args: []string{"sh", "-c", test.script}, Env: os.Environ()})
		if e.Code != test.code || e.Signal != test.signal || e.At.IsZero() {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if _, err := table.Start(proc.Command{Path: "/no/such/program", Args: []string{"x"}}); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("what does not exist: %v, want ENOENT", err)
	}
	out, _ := run(t, table, proc.Command{Path: "/bin/sh", Args: []string{"sh", "-c", "pwd; echo $0 $A"}, Env: []string{"A=b"}, Dir: "/usr", Session: true})
	elsewhere(t, table)
	tooLong(t, table)
	toTheEnd(t, table)
	notEnding(t, table)
	if out != "/usr\nsh b\n" {
		t.Errorf("it wrote %q", out)
	}
}

// toTheEnd checks the programs that Run runs: no other reader takes their exits, and they
// take those of no other process.
func toTheEnd(t *testing.T, table *proc.Table) {
	t.Helper()
	const orphans = "for i in 1 2 3 4 5 6 7 8 9; do sh -c 'exit 5' & done; exit 0"
	pid, err := table.Start(proc.Command{Path: "/bin/sh", Args: []string{"sh", "-c", orphans}})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			var out bytes.Buffer
			script := fmt.Sprintf("echo %d; exit %d", i, i%2)
			err := table.Run(t.Context(), &out, "/bin/sh", "-c", script)
			if (err == nil) != (i%2 == 0) || out.String() != fmt.Sprintf("%d\n", i) {
				t.Errorf("%q: wrote %q (%v)", script, out.String(), err)
			}
		})
	}
	all.Wait()
	if e := <-table.Ends(); e.PID != pid || e.Code != 0 {
		t.Errorf("the exit of another: %+v, want that of process %d", e, pid)
	}
	if err := table.Run(t.Context(), io.Discard, "/no/such/program"); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("what does not exist: %v, want ENOENT", err)
	}
	for script, end := range map[string]time.Duration{
		"sleep 600; true":         0,
		"setsid sleep 9 & exit 0": time.Hour, // its output stays open
	} {
		ctx, cancel := context.WithTimeout(t.Context(), end)
		begin := time.Now()
		err := table.Run(ctx, io.Discard, "/bin/sh", "-c", script)
		if took := time.Since(begin); err == nil || took > time.Minute {
			t.Errorf("%q: %v after %s, want an error", script, err, took)
		}
		cancel()
	}
}

// cancelWriter keeps a text, of which the first piece cancels something.
type cancelWriter struct {
	text   bytes.Buffer
	cancel func()
}

func (w *cancelWriter) Write(p []byte) (int, error) {
	w.cancel()
	return w.text.Write(p)
}

// notEnding checks that Run does not wait for a program that was killed and does not end, and that the program is reaped once it does.
func notEnding(t *testing.T, table *proc.Table) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := cancelWriter{cancel: cancel}
	returned := make(chan error, 1)
	go func() { returned <- table.Run(ctx, &out, os.Args[0], argLeaveGroup) }()
	select {
	case err := <-returned:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the error of the context", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Run waits for a program that does not end")
	}
	var pid int
	if _, err := fmt.Sscan(out.text.String(), &pid); err != nil || !strings.HasSuffix(out.text.String(), "<nil>\n") {
		t.Fatalf("it wrote %q (%v)", out.text.String(), err)
	}
	if err := syscall.Kill(pid, syscall.SIGUSR1); err != nil {
		t.Error(err)
	}
	if _, e := run(t, table, proc.Command{Path: "/bin/sh", Args: []string{"sh", "-c", "exit 4"}}); e.Code != 4 {
		t.Errorf("the exit of another: %+v", e)
	}
}

// run runs a command, and returns its output and its exit.
func run(t *testing.T, table *proc.Table, c proc.Command) (string, proc.Exit) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close() //nolint:errcheck // nothing was written
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Files = []uintptr{null.Fd(), to.Fd(), null.Fd()}
	pid, err := table.Start(c)
	_ = to.Close()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-table.Ends():
		if e.PID != pid {
			t.Errorf("process %d ended, want %d", e.PID, pid)
		}
		return string(b), e
	case <-time.After(time.Minute):
		t.Fatal("its end was not told")
		return "", proc.Exit{}
	}
}

func TestSignalsHaveNames(t *testing.T) {
	t.Parallel()
	for s, want := range map[syscall.Signal]string{syscall.SIGKILL: "SIGKILL", syscall.SIGTERM: "SIGTERM", 50: "signal 50"} {
		if got := proc.SignalName(s); got != want {
			t.Errorf("signal %d is %q, want %q", s, got, want)
		}
	}
}
