// Package process runs the programs of the platform for tests: it begins them,
// kills them as a crash would, begins them again, and finds those that other
// programs have begun.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/test/testbed/kit"
	"github.com/benchmark-ai/bai/services/test/testbed/port"
)

// patience is how long a program may take to end after its signal.
const patience = 10 * time.Minute

// Build builds all programs as make build does, which is fast if they are built, and
// copies them into a folder, where later builds do not change them.
func Build(into string) (err error) {
	root, err := kit.Root()
	if err != nil {
		return err
	}
	bin := filepath.Join(root, "bin")
	if err := errors.Join(os.MkdirAll(bin, 0o755), os.MkdirAll(into, 0o755)); err != nil { //nolint:gosec // as any folder of programs
		return err
	}
	turn, err := os.Open(bin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, turn.Close()) }()
	if err := syscall.Flock(int(turn.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("wait for another who builds: %w", err)
	}
	cmd := exec.Command("make", "--silent", "-C", root, "build") //nolint:noctx // as long as it takes
	cmd.Env = append(os.Environ(), "MAKEFLAGS=")                 // nothing of a make that runs this
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make build: %w\n%s", err, out)
	}
	programs, err := filepath.Glob(filepath.Join(root, "*", "cmd", "*", "main.go"))
	for _, path := range programs {
		name := filepath.Base(filepath.Dir(path))
		err = errors.Join(err, linkOrCopy(filepath.Join(bin, name), filepath.Join(into, name)))
	}
	return err
}

// linkOrCopy links a file, or copies it where it cannot be linked.
func linkOrCopy(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	b, err := os.ReadFile(from) //nolint:gosec // a program that was just built
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755) //nolint:gosec // it is executed
}

// Process is one program, which may be begun again and again.
type Process struct {
	Name string
	Log  Log // of all of its lives

	argv   []string
	health string // where it answers /readyz

	current *running // nil while it does not run
}

// running is one process of a program.
type running struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // then
}

// New returns a program that is not begun yet. It answers /readyz at health,
// unless that is empty.
func New(name, health string, argv ...string) *Process {
	return &Process{Name: name, health: health, argv: argv}
}

// Begin starts the program. It dies with the test's own process, and its Stop is
// the test's to call.
func (p *Process) Begin(tb testing.TB) {
	tb.Helper()
	l := &running{cmd: exec.Command(p.argv[0], p.argv[1:]...), done: make(chan struct{})} //nolint:gosec,noctx // a test's, which ends it
	l.cmd.Stdout, l.cmd.Stderr = &p.Log, &p.Log
	if err := kit.Start(l.cmd); err != nil {
		tb.Fatalf("begin %s: %v", p.Name, err)
	}
	go func() {
		l.err = l.cmd.Wait()
		close(l.done)
	}()
	p.current = l
}

// EndWith ends the program with the test. If the test has failed, it logs the program's
// output.
func (p *Process) EndWith(tb testing.TB) {
	tb.Helper()
	tb.Cleanup(func() {
		p.Stop(tb)
		if tb.Failed() {
			tb.Logf("the log of %s:\n%s", p.Name, p.Log.Tail(64<<10))
		}
	})
}

// IsRunning reports whether the program was begun, and neither killed nor stopped since.
func (p *Process) IsRunning() bool { return p.current != nil }

// PID is the number of the program's process, which runs.
func (p *Process) PID() int { return p.current.cmd.Process.Pid }

// Kill ends the program at once. It is an error if it has ended before.
func (p *Process) Kill(tb testing.TB) {
	tb.Helper()
	p.wantRunning(tb)
	if p.current == nil {
		return
	}
	_ = p.current.cmd.Process.Kill()
	<-p.current.done
	p.current = nil
}

// Stop ends the program as an operator would, if it runs.
func (p *Process) Stop(tb testing.TB) {
	tb.Helper()
	p.wantRunning(tb)
	if p.current == nil {
		return
	}
	_ = p.current.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.current.done:
	case <-time.After(patience):
		tb.Errorf("%s did not end within %s of SIGTERM", p.Name, patience)
		_ = p.current.cmd.Process.Signal(syscall.SIGQUIT)
		<-p.current.done
	}
	if p.current.err != nil {
		tb.Errorf("%s ended: %v", p.Name, p.current.err)
	}
	p.current = nil
}

// wantRunning fails the test if the program has ended by itself.
func (p *Process) wantRunning(tb testing.TB) {
	tb.Helper()
	if p.current == nil {
		return
	}
	select {
	case <-p.current.done:
		tb.Errorf("%s ended by itself: %v", p.Name, p.current.err)
		p.current = nil
	default:
	}
}

// Ready returns why the program is not of use now, nil if it says that it is.
func (p *Process) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.health+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s says: %s", p.Name, bytes.TrimSpace(text))
	}
	return err
}

// AwaitReady waits until the program says that it is of use.
func (p *Process) AwaitReady(tb testing.TB) {
	tb.Helper()
	for late := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := p.Ready(tb.Context())
		if err == nil {
			return
		}
		if time.Now().After(late) {
			tb.Fatalf("%s is not ready after %s: %v\n%s", p.Name, patience, err, p.Log.Tail(4000))
		}
	}
}

// AwaitOutput waits until the program's output after the first n bytes matches a pattern,
// and returns that match and its groups.
func (p *Process) AwaitOutput(tb testing.TB, n int, pattern *regexp.Regexp) []string {
	tb.Helper()
	for late := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if found := pattern.FindStringSubmatch(p.Log.Since(n)); found != nil {
			return found
		}
		if time.Now().After(late) {
			tb.Fatalf("%s does not say %q within %s:\n%s", p.Name, pattern, patience, p.Log.Since(n))
		}
	}
}

// FreeAddr returns an address of loopback whose port is reserved until the test has
// ended: a program may listen on it repeatedly.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	return port.Addr(tb)
}

// Log is a program's output. It may be read meanwhile.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// Len is how much was printed so far.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Len()
}

// Since returns the output after the first n bytes.
func (l *Log) Since(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text.Bytes()[min(n, l.text.Len()):])
}

// Tail returns the last n bytes.
func (l *Log) Tail(n int) string { return l.Since(max(0, l.Len()-n)) }

// Using returns the processes whose command line, environment or working directory
// names a folder, as "PID COMMAND".
func Using(dir string) []string {
	var found []string
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		if proc == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		line, _ := os.ReadFile(proc + "/cmdline") // it may be gone
		env, _ := os.ReadFile(proc + "/environ")
		cwd, _ := os.Readlink(proc + "/cwd")
		if bytes.Contains(line, []byte(dir)) || bytes.Contains(env, []byte(dir)) || strings.HasPrefix(cwd, dir) {
			found = append(found, filepath.Base(proc)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// WantNothingLeft waits until no process and no mount names a folder.
func WantNothingLeft(tb testing.TB, dir string) {
	tb.Helper()
	for late := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		left := Using(dir)
		if mounts, _ := os.ReadFile("/proc/self/mounts"); strings.Contains(string(mounts), dir) {
			left = append(left, "a mount below "+dir)
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(late) {
			tb.Error(errors.New("left behind:\n" + strings.Join(left, "\n")))
			return
		}
	}
}
