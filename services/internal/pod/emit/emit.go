//go:build linux

package emit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Exit codes.
const (
	exitDropped = 1 // the line could not be written, in strict mode
	exitRefused = 2 // the arguments are invalid
)

// minWriteTime is how long a write to the FIFO is given, however short its wait is to be.
const minWriteTime = time.Second

// Run emits the metrics of a command line to the target of the environment, and returns
// the exit code. It is 0 also for a line that could not be written, which Run reports on
// stderr, unless BENCHMARK_AI_STRICT is 1. A line is written as a whole; one without an end
// that the file ends in is ended first.
func Run(args []string, env func(string) string, stdout, stderr io.Writer) int {
	e, err := parseArgs(args)
	if errors.Is(err, errHelp) {
		_, _ = io.WriteString(stdout, usage)
		return 0
	}
	var to target
	if err == nil {
		to, err = targetFromEnv(env)
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "bai-emit: %v\n", err)
		return exitRefused
	}
	if err := to.emit(e, stdout); err != nil {
		_, _ = fmt.Fprintf(stderr, "bai-emit: dropped: %v\n", err)
		if strict := env(pod.EnvStrict); strict != "" && strict != "0" {
			return exitDropped
		}
	}
	return 0
}

func (w target) emit(e *emission, stdout io.Writer) error {
	switch {
	case w.file != "":
		return appendTo(w.file, e.line(time.Now()))
	case w.fifo != "":
		return w.send(e.line(time.Time{}))
	}
	if _, err := io.WriteString(stdout, e.line(time.Time{})); err != nil {
		return fmt.Errorf("cannot print: %w", rootCause(err))
	}
	return nil
}

func appendTo(file, line string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666) //nolint:gosec // whoever collects may have another user
	if err == nil {
		if isTorn(file) {
			line = "\n" + line
		}
		_, err = f.WriteString(line)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("cannot append to %s: %w", file, rootCause(err))
	}
	return nil
}

// isTorn reports whether a file ends in a line without an end, as of a program that was killed. A byte that is 0 is one whose space the
// collector has released.
func isTorn(file string) bool {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return err == nil && last[0] != '\n' && last[0] != 0
}

// send writes to the FIFO once it exists and has a reader.
func (w target) send(line string) error {
	end := time.Now().Add(w.fifoTimeout)
	for !exists(w.fifo) {
		if time.Now().After(end) {
			return fmt.Errorf("%s was not made within %g s", w.fifo, w.fifoTimeout.Seconds())
		}
		time.Sleep(10 * time.Millisecond)
	}
	if earliest := time.Now().Add(minWriteTime); end.Before(earliest) {
		end = earliest
	}
	err := write(w.fifo, line, end)
	for errors.Is(err, syscall.ENXIO) && time.Now().Before(end) {
		time.Sleep(10 * time.Millisecond)
		err = write(w.fifo, line, end)
	}
	switch {
	case errors.Is(err, syscall.ENXIO), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("nobody read %s in time", w.fifo)
	case err != nil:
		return fmt.Errorf("cannot write to %s: %w", w.fifo, rootCause(err))
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// write writes to a FIFO until end. A FIFO without a reader is syscall.ENXIO.
func write(fifo, line string, end time.Time) error {
	f, err := os.OpenFile(fifo, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()             //nolint:errcheck // the write says what became of it
	_ = f.SetWriteDeadline(end) // no file but a FIFO has one, or needs it
	_, err = f.WriteString(line)
	return err
}

// rootCause is the kernel's error without the path, which the message names already.
func rootCause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
