package jvm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

// Home is the folder of one server's own: its configuration, data and output.
// The server may write there.
type Home struct {
	Dir string

	user *syscall.Credential // user of the server if this process is root; else nil
}

// NewHome makes the folder of a server, and removes it when the test has ended.
// It first removes those that killed processes have left, servers included.
func NewHome(tb testing.TB, name string) *Home {
	tb.Helper()
	root := filepath.Join(os.TempDir(), "bai-testbed-"+strconv.Itoa(os.Getuid()))
	err := os.MkdirAll(root, 0o755) //nolint:gosec // read by the user that servers run as
	if err == nil {
		err = sweep(root)
	}
	h := &Home{}
	if err == nil {
		h.Dir, err = os.MkdirTemp(root, name+"-") //nolint:usetesting // root's servers run as another user, who cannot reach the test's own folder
	}
	if err == nil {
		err = writePIDFile(h.Dir, "owner", os.Getpid())
	}
	if err == nil && os.Getuid() == 0 { // Elasticsearch refuses to be root
		h.user = &syscall.Credential{Uid: 65534, Gid: 65534}
		err = os.Chown(h.Dir, 65534, 65534)
	}
	if err != nil {
		tb.Fatalf("make a folder for %s: %v", name, err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(h.Dir); err != nil {
			tb.Errorf("remove the folder of %s: %v", name, err)
		}
	})
	return h
}

// Path returns the path of a file in the folder.
func (h *Home) Path(elem ...string) string {
	return filepath.Join(append([]string{h.Dir}, elem...)...)
}

// Write writes a file that the server reads.
func (h *Home) Write(tb testing.TB, name, text string) {
	tb.Helper()
	path := h.Path(name)
	err := h.mkdir(filepath.Dir(path))
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // read by the server's user
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// mkdir makes folders that the server may write to.
func (h *Home) mkdir(dir string) error {
	if dir == h.Dir {
		return nil
	}
	if err := h.mkdir(filepath.Dir(dir)); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o755) //nolint:gosec // read by the server's user
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil && h.user != nil {
		err = os.Chown(dir, int(h.user.Uid), int(h.user.Gid))
	}
	return err
}

// Run runs a command of the server to its end.
func (h *Home) Run(tb testing.TB, env []string, argv ...string) {
	tb.Helper()
	cmd := h.command(env, argv)
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%s: %v:\n%s", strings.Join(argv, " "), err, tail(out))
	}
}

func (h *Home) command(env, argv []string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:gosec,noctx // it outlives every context of the test and ends with the process
	cmd.Dir, cmd.Env = h.Dir, append(os.Environ(), append([]string{"HOME=" + h.Dir}, env...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: h.user}
	return cmd
}

// Process is a server that runs, or ran.
type Process struct {
	home   *Home
	env    []string
	argv   []string
	ready  func(context.Context) error
	ended  chan struct{} // closed once the process that was begun is gone
	starts int           // its PID
}

// Begin starts a server, waits until ready returns nil, and ends it with the
// test. The server writes the PID that is to be killed to the file pid in its
// home, unless that is the process begun.
func (h *Home) Begin(tb testing.TB, ready func(context.Context) error, env []string, argv ...string) *Process {
	tb.Helper()
	p := &Process{home: h, env: env, argv: argv, ready: ready}
	tb.Cleanup(p.End)
	p.Restart(tb)
	return p
}

// Restart restarts the server, after Kill or End, with its data.
func (p *Process) Restart(tb testing.TB) {
	tb.Helper()
	out, err := os.OpenFile(p.home.Path("output.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := p.home.command(p.env, p.argv)
	cmd.Stdout, cmd.Stderr = out, out
	err = errors.Join(kit.Start(cmd), out.Close())
	if err == nil {
		p.starts = cmd.Process.Pid
		err = writePIDFile(p.home.Dir, "begun", p.starts)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if cmd.Process != nil {
			_ = cmd.Wait() // how it ended is in its output
		}
	}()
	p.ended = ended
	if err != nil {
		tb.Fatalf("start %s: %v", p.argv[0], err)
	}
	p.await(tb)
}

// await waits until the server answers.
func (p *Process) await(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	for {
		err := p.ready(ctx)
		if err == nil {
			return
		}
		select {
		case <-p.ended:
			tb.Fatalf("%s ended while it began:\n%s", p.argv[0], p.output())
		case <-ctx.Done():
			tb.Fatalf("%s does not answer after %s: %v:\n%s", p.argv[0], startTimeout, err, p.output())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (p *Process) output() []byte {
	b, err := os.ReadFile(p.home.Path("output.log"))
	if err != nil {
		return []byte(err.Error())
	}
	return tail(b)
}

// Kill ends the server at once, as a crash would.
func (p *Process) Kill() { p.end(syscall.SIGKILL) }

// End asks the server to end, and waits.
func (p *Process) End() { p.end(syscall.SIGTERM) }

func (p *Process) end(signal syscall.Signal) {
	if p.ended == nil {
		return
	}
	pids := []int{p.pid(), p.starts}
	for _, pid := range pids {
		_ = syscall.Kill(pid, signal) // it may have ended by itself
	}
	select {
	case <-p.ended:
		for _, pid := range pids {
			removeAttachSocket(pid)
		}
	case <-time.After(30 * time.Second):
		p.end(syscall.SIGKILL)
	}
}

// removeAttachSocket removes the socket that a virtual machine leaves when it is killed. HotSpot makes it in /tmp, whatever java.io.tmpdir
// is. There may be none; one that belongs to another user stays.
func removeAttachSocket(pid int) { _ = os.Remove(fmt.Sprintf("/tmp/.java_pid%d", pid)) }

// pid returns the process that holds the data.
func (p *Process) pid() int {
	return cmp.Or(notedPID(p.home.Dir), p.starts)
}

// Java returns the home of the oldest Java that all servers run on, 17 or later.
func Java() (string, error) {
	homes, err := filepath.Glob("/usr/lib/jvm/*")
	if err != nil {
		return "", err
	}
	if path, err := exec.LookPath("java"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			homes = append(homes, filepath.Dir(filepath.Dir(path)))
		}
	}
	home, best := os.Getenv("JAVA_HOME"), 1<<10
	if home != "" && version(home) >= 17 {
		return home, nil
	}
	for _, at := range homes {
		if v := version(at); v >= 17 && v < best {
			home, best = at, v
		}
	}
	if best == 1<<10 {
		return "", errors.New("no Java 17 or later found: install one (apt-get install openjdk-17-jre-headless) or set JAVA_HOME")
	}
	return home, nil
}

// version returns the major version of the Java in a folder, 0 without one.
func version(home string) int {
	if _, err := os.Stat(filepath.Join(home, "bin", "java")); err != nil {
		return 0
	}
	b, err := os.ReadFile(filepath.Join(home, "release")) //nolint:gosec // of a Java
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(b), `JAVA_VERSION="`)
	digits := strings.FieldsFunc(after, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return 0
	}
	major, err := strconv.Atoi(digits[0])
	if err != nil {
		return 0
	}
	return major
}

// writePIDFile writes down which process is meant, so that it is not taken for a later
// one of the same PID.
func writePIDFile(dir, name string, pid int) error {
	return os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, "%d %s", pid, startTime(pid)), 0o644) //nolint:gosec // not a secret
}

// readPIDFile returns the PID of the process that was written down, 0 if it is gone.
func readPIDFile(dir, name string) int {
	b, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // written by mark
	if err != nil {
		return 0
	}
	text, when, _ := strings.Cut(string(b), " ")
	pid, err := strconv.Atoi(text)
	if err != nil || when == "" || startTime(pid) != when {
		return 0
	}
	return pid
}

// notedPID returns the PID that the server in a folder has written there, 0 if it has written none. The server may be gone.
func notedPID(dir string) int {
	b, err := os.ReadFile(filepath.Join(dir, "pid")) //nolint:gosec // written by the server
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid <= 1 {
		return 0
	}
	return pid
}

// serverPID returns the PID of the server that works in a folder, 0 if it is gone:
// its command names the folder.
func serverPID(dir string) int {
	pid := notedPID(dir)
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.Contains(string(command), dir) {
		return 0
	}
	return pid
}

// startTime distinguishes a process from others with its PID, "" if it is gone.
func startTime(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	text := string(b)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

// sweep ends and removes the leftovers of killed processes.
func sweep(root string) error {
	dirs, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range dirs {
		dir := filepath.Join(root, d.Name())
		if _, err := os.Stat(filepath.Join(dir, "owner")); err != nil || readPIDFile(dir, "owner") != 0 {
			continue // in use, or about to be
		}
		for _, pid := range []int{readPIDFile(dir, "begun"), serverPID(dir)} {
			if pid != 0 {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may end by itself meanwhile
				removeAttachSocket(pid)
			}
		}
		if pid := notedPID(dir); pid != 0 && startTime(pid) == "" { // it was gone before
			removeAttachSocket(pid)
		}
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}
