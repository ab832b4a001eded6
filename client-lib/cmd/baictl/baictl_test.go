package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// binary is baictl itself, built once with the race detector if this test has it;
// plain is built without it, for what only prints: it starts in a quarter of the
// time, and the output of a thousand commands is looked at.
var binary, plain string

func TestMain(m *testing.M) { os.Exit(withBinary(m)) }

func withBinary(m *testing.M) int {
	dir, err := os.MkdirTemp("", "baictl-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // leftovers lie in the folder for temporary files
	binary, plain = filepath.Join(dir, "baictl"), filepath.Join(dir, "plain")
	for path, flags := range map[string][]string{binary: raceFlags(), plain: nil} {
		args := append([]string{"build", "-ldflags", "-w -X main.version=v0.9.0", "-o", path}, flags...)
		build := exec.CommandContext(context.Background(), "go", append(args, ".")...)
		if len(flags) == 0 {
			build.Env = append(os.Environ(), "CGO_ENABLED=0")
		}
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build baictl: %v\n%s", err, out)
			return 1
		}
	}
	return m.Run()
}

// waitTimeout is how long a test waits for an expected state.
const waitTimeout = time.Minute

// command is baictl with a home of its own, ann's, at a platform; without a platform
// it only prints.
func command(t *testing.T, server string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	t.Cleanup(cancel)
	home, program := t.TempDir(), binary
	if server == "" {
		program = plain
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = "testdata"
	cmd.Env = []string{"HOME=" + home, "TMPDIR=" + home, "TZ=UTC", "TERM=xterm-256color", "BAI_OWNER=ann", "BAI_SERVER=" + server, "GORACE=atexit_sleep_ms=0"}
	return cmd
}

type result struct {
	code     int
	out, err string
}

// String is how a golden file shows it.
func (r result) String() string {
	return fmt.Sprintf("exit %d\n--- stdout\n%s--- stderr\n%s", r.code, r.out, r.err)
}

func wait(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	err := cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// finish runs a command to its end, in a pipe.
func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, notes bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &notes
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	code := wait(t, cmd)
	return result{code, out.String(), notes.String()}
}

// runPiped runs baictl to its end, in a pipe.
func runPiped(t *testing.T, server string, args ...string) result {
	t.Helper()
	return finish(t, command(t, server, args...))
}

// A terminal with a program in it.
type terminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	tty  *os.File
	done chan struct{} // closed when everything was read

	mu  sync.Mutex
	raw bytes.Buffer
}

// open starts a command in a terminal.
func open(t *testing.T, cmd *exec.Cmd, columns uint16) *terminal {
	t.Helper()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: columns})
	if err != nil {
		t.Fatal(err)
	}
	s := &terminal{t: t, cmd: cmd, tty: tty, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		_, _ = io.Copy(s, tty) // ends with EIO when the program has ended
	}()
	t.Cleanup(func() { _ = tty.Close() })
	return s
}

// Write implements io.Writer: the terminal's input.
func (s *terminal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raw.Write(p)
}

func (s *terminal) received() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raw.String()
}

// await returns once the terminal received a text.
func (s *terminal) await(text string) {
	s.t.Helper()
	until(s.t, fmt.Sprintf("%q in the terminal", text), func() bool { return strings.Contains(s.received(), text) })
}

// press sends keys.
func (s *terminal) press(keys string) {
	s.t.Helper()
	if _, err := io.WriteString(s.tty, keys); err != nil {
		s.t.Fatal(err)
	}
}

// end waits for the program's end and returns its exit code.
func (s *terminal) end() int {
	s.t.Helper()
	<-s.done
	return wait(s.t, s.cmd)
}

// screen is the terminal's visible text: without overwritten lines and colours.
func (s *terminal) screen() string {
	var lines strings.Builder
	var line []rune
	column := 0
	for text := s.received(); text != ""; {
		switch {
		case strings.HasPrefix(text, "\x1b[K"):
			line, text = line[:min(column, len(line))], text[3:]
			continue
		case strings.HasPrefix(text, "\x1b["):
			text = text[strings.IndexByte(text, 'm')+1:]
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch r {
		case '\r':
			column = 0
		case '\n':
			lines.WriteString(string(line) + "\n")
			line, column = nil, 0
		default:
			line = append(line[:min(column, len(line))], append([]rune{r}, line[min(column+1, len(line)):]...)...)
			column++
		}
	}
	return lines.String() + string(line)
}

// until polls until is returns true.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.NewTimer(waitTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
