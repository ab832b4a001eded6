//go:build linux

package kubecluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Machine is the main function of a machine's first process, whose folder is dir. It
// starts the machine's programs, and then reaps orphans until its standard input ends. It
// returns only if the machine cannot be started, or if one of its programs ends: the process
// ends then, and all others in the machine with it.
func Machine(ctx context.Context, dir string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	var s machineSpec
	b, err := os.ReadFile(filepath.Join(dir, "spec.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	m := &machine{machineSpec: s, parts: make(map[int]string)}
	if err := m.start(ctx); err != nil {
		return fmt.Errorf("machine %s: %w", s.Name, err)
	}
	return m.reap()
}

// machine is a machine of the cluster, seen from inside.
type machine struct {
	machineSpec

	parts map[int]string // programs that go on, by PID
}

func (m *machine) start(ctx context.Context) error {
	if err := m.isolate(); err != nil {
		return err
	}
	if m.sharesHostNetwork() {
		return m.controlPlane(ctx)
	}
	if err := m.network(ctx); err != nil {
		return err
	}
	if m.Number == 1 {
		return m.controlPlane(ctx)
	}
	return m.node(ctx)
}

// isolate makes the process table of the new namespace the one that is seen.
func (m *machine) isolate() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return unix.Sethostname([]byte(m.Name))
}

func (m *machine) network(ctx context.Context) error {
	if err := command("ip", "link", "set", "lo", "up"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := await(ctx, 2*time.Millisecond, "wait for eth0", func() error { // the keeper moves it here
		_, err := net.InterfaceByName("eth0")
		return err
	})
	if err != nil {
		return err
	}
	err = errors.Join(command("ip", "addr", "add", m.address()+"/24", "dev", "eth0"), command("ip", "link", "set", "eth0", "up"))
	for n := 1; n <= m.Nodes && err == nil; n++ {
		if m.Number != firstNode+n {
			err = command("ip", "route", "add", podRange(n), "via", nodeAddress(n))
		}
	}
	return err
}

// run starts a part that goes on, with a log of its own.
func (m *machine) run(name, path string, args ...string) error {
	log, err := os.Create(m.path("log/" + name + ".log")) //nolint:gosec // ours
	if err != nil {
		return err
	}
	defer log.Close()                  //nolint:errcheck // the child has it
	cmd := exec.Command(path, args...) //nolint:gosec,noctx // goes on
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	m.logf("%s is process %d", name, cmd.Process.Pid)
	m.parts[cmd.Process.Pid] = name
	return cmd.Process.Release()
}

// kube starts a part of Kubernetes that goes on. It comes before other programs, as on a
// machine of its own: a kubelet that a busy machine holds up loses its node.
func (m *machine) kube(part string, args ...string) error {
	return m.run(part, "nice", append([]string{"-n", "-10", m.program(part)}, args...)...)
}

func (m *machine) logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05.000 ")+format+"\n", args...)
}

// reap waits for every process that ends, for as long as the machine lives and all of its parts do.
func (m *machine) reap() error {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.ECHILD):
			return fmt.Errorf("machine %s: nothing runs here any more", m.Name)
		case err == nil && m.parts[pid] != "":
			return fmt.Errorf("machine %s: %w", m.Name, m.endOf(m.parts[pid]))
		case err == nil && (status.ExitStatus() > 0 || status.Signaled()):
			m.logf("process %d ended: exit %d, signal %d", pid, status.ExitStatus(), status.Signal())
		}
	}
}

// ready awaits the API server, or the end of a part.
func (m *machine) ready(ctx context.Context) error {
	a, err := newAPI(m.PKI, m.server())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	return await(ctx, 20*time.Millisecond, "wait for the API server", func() error {
		for pid, name := range m.parts {
			if hasEnded(pid) {
				fail(m.endOf(name))
			}
		}
		_, err := a.get(ctx, readyURL)
		return err
	})
}

// hasEnded reports whether a child has ended, which reap has still to wait for.
func hasEnded(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo == int32(unix.SIGCHLD)
}

// endOf is the error that a part has ended, with the last line of its log.
func (m *machine) endOf(part string) error {
	return fmt.Errorf("%s has ended; its log ends with %q", part, lastLine(m.path("log/"+part+".log")))
}

// lastLine returns the last line of a log that has something.
func lastLine(path string) string {
	b, err := os.ReadFile(path) //nolint:gosec // ours
	if err != nil {
		return err.Error()
	}
	text := strings.TrimSpace(string(b))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// command runs a program to its end.
func command(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil { //nolint:gosec,noctx // short
		return fmt.Errorf("%s %v: %w: %s", name, args, err, out)
	}
	return nil
}

func port(n int) string { return strconv.Itoa(n) }
