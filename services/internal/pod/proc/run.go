//go:build linux

package proc

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	outputDelay = time.Second // how long a program's output may stay open after the program's end
	killDelay   = time.Second // how long the end of a program that was killed is waited for
)

// Run runs a program with the environment of this process to its end, or until ctx is done, and writes its standard output to out. It
// returns an error if the program could not be started, failed, was killed because ctx was done, or if its output was not complete within
// a second after its end. It returns at most two seconds after ctx is done, also if the kernel cannot end the program, as one that waits
// for a device; such a program is reaped later. Ends does not send its exit. Package os/exec cannot be used beside a table, which would
// take the exits.
func (t *Table) Run(ctx context.Context, out io.Writer, path string, args ...string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close() //nolint:errcheck // nothing was written
	from, to, err := os.Pipe()
	if err != nil {
		return err
	}
	pid, exited, err := t.StartAlone(Command{
		Path: path, Args: append([]string{filepath.Base(path)}, args...), Env: os.Environ(),
		Files: []uintptr{null.Fd(), to.Fd(), null.Fd()},
	})
	_ = to.Close()
	if err != nil {
		_ = from.Close()
		return err
	}
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(out, from)
		_ = from.Close() // a program whose output has no reader any more ends
		copied <- err
	}()
	defer context.AfterFunc(ctx, func() { t.killGroup(pid) })()
	e, ended := awaitExit(ctx, exited)
	_ = from.SetReadDeadline(time.Now().Add(outputDelay)) // a pipe has deadlines
	switch err := <-copied; {
	case !ended:
		return fmt.Errorf("%s was killed and has not ended: %w", path, ctx.Err())
	case err != nil:
		return fmt.Errorf("read the output of %s: %w", path, err)
	case e.Code != 0:
		return fmt.Errorf("%s: exit code %d", path, e.Code)
	}
	return ctx.Err()
}

// StartAlone is Start for a process whose exit goes to a channel of its own, and not to Ends.
func (t *Table) StartAlone(c Command) (pid int, exited <-chan Exit, err error) {
	exits := make(chan Exit, 1)
	pid, err = t.start(start{command: c, exits: exits})
	return pid, exits, err
}

// awaitExit waits for an exit, but no longer than killDelay after ctx is done. It reports whether the exit came.
func awaitExit(ctx context.Context, exited <-chan Exit) (Exit, bool) {
	select {
	case e := <-exited:
		return e, true
	case <-ctx.Done():
	}
	late := time.NewTimer(killDelay)
	defer late.Stop()
	select {
	case e := <-exited:
		return e, true
	case <-late.C:
		return Exit{}, false
	}
}

// killGroup kills the process group of a child that was not reaped.
func (t *Table) killGroup(pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.children[pid]; known {
		_ = unix.Kill(-pid, unix.SIGKILL)
	}
}
