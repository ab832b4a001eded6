//go:build linux

package proc_test

import (
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/pod/proc"
)

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
	if out != "/usr\nsh b\n" {
		t.Errorf("it wrote %q", out)
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
