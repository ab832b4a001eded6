//go:build unix

package executable_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/executable"
	"github.com/benchmark-ai/bai/services/internal/clustertest"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

// sample returns the command of the sample engine, which runs plans on this machine.
func sample(t *testing.T) []string {
	t.Helper()
	python := tooltest.Program(t, "python3", "python3")
	path, err := filepath.Abs("../../../../sample-benchmarks/engine/engine.py")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "engine")
	t.Cleanup(func() { awaitEmpty(t, dir) })
	return []string{python, path, "--dir", dir, "--", "sh", "-s"}
}

// awaitEmpty waits until the folder of an engine has no attempts, so that it can be removed.
func awaitEmpty(t *testing.T, dir string) {
	t.Helper()
	for late := time.Now().Add(5 * time.Minute); time.Now().Before(late); time.Sleep(20 * time.Millisecond) {
		if left, _ := filepath.Glob(dir + "/*/record"); len(left) == 0 {
			return
		}
	}
	t.Errorf("attempts are left in %s", dir)
}

func open(t *testing.T, s executable.Settings) *executable.Cluster {
	t.Helper()
	c, err := executable.New(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// The sample runs programs, but no pods: the tests about images, volumes, sidecars and several pods do not apply.
func TestTheSampleEngineKeepsTheContractOfACluster(t *testing.T) {
	t.Parallel()
	clustertest.Run(t, clustertest.Suite{Scope: "default", NoPrograms: true, OneJob: true, Timeout: time.Minute, New: func(t *testing.T) clustertest.Cluster {
		t.Helper()
		return open(t, executable.Settings{Command: sample(t), Poll: 10 * time.Millisecond})
	}})
}

// Every call of one copy may be made again to another: nothing is lost with a killed copy, and nothing is started twice.
func TestACopyThatIsKilledLosesNothing(t *testing.T) {
	t.Parallel()
	command, marks := sample(t), filepath.Join(t.TempDir(), "marks")
	one, two := open(t, executable.Settings{Command: command}), open(t, executable.Settings{Command: command})
	script := "echo begun >> " + marks + "; echo first; exec sleep 600"
	for _, c := range []*executable.Cluster{one, two} {
		j := job("r1", script)
		if err := c.Create(t.Context(), j); err != nil && !errors.Is(err, cluster.ErrExists) {
			t.Fatal(err)
		}
		c.KillCopy()
	}
	r := cluster.Ref{Run: "r1", Attempt: 1, Scope: "default", Job: "bai-r1-1"}
	seen := await(t, one, r, func(s cluster.Snapshot) bool { return s.Pods[0].Status.Phase == corev1.PodRunning })
	one.KillCopy()
	again, err := two.Observe(t.Context(), r)
	if err != nil || again.Job.UID != seen.Job.UID {
		t.Errorf("the other service sees %v, %v", again.Job, err)
	}
	if text, _ := os.ReadFile(marks); string(text) != "begun\n" {
		t.Errorf("the benchmark began %q times", text)
	}
	if err := one.Stop(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	await(t, two, r, func(s cluster.Snapshot) bool { return s.Pods[0].Status.Phase == corev1.PodFailed })
	two.KillCopy()
	if err := two.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, one, r)
}

// At its deadline an attempt ends with all its processes, those that its command started and those that ignore SIGTERM, too.
func TestTheSampleEngineEndsAllProcessesAtTheDeadline(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script   string
		deadline int64
		reason   string
		code     int32
	}{
		"a command that ends by SIGTERM":       {"exec sleep 600", 1, "DeadlineExceeded", 0},
		"a command that ignores SIGTERM":       {"trap '' TERM; while :; do sleep 600; done", 1, "DeadlineExceeded", 0},
		"a command with its own exit code":     {"trap 'exit 7' TERM; sleep 600 & wait", 1, "DeadlineExceeded", 0},
		"a child that holds the output":        {"(trap '' TERM; exec sleep 600) & exit 0", 1, "DeadlineExceeded", 0},
		"a command that ends before, with 124": {"exit 124", 600, "BackoffLimitExceeded", 124},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := sample(t)
			c := open(t, executable.Settings{Command: command, Poll: 10 * time.Millisecond})
			j := job("r1", tt.script)
			j.Spec.ActiveDeadlineSeconds = &tt.deadline
			if err := c.Create(t.Context(), j); err != nil {
				t.Fatal(err)
			}
			r := cluster.Ref{Run: "r1", Attempt: 1, Scope: "default", Job: j.Name}
			seen := await(t, c, r, func(s cluster.Snapshot) bool { return s.Pods[0].Status.Phase == corev1.PodFailed })
			if got := seen.Job.Status.Conditions[0].Reason; got != tt.reason {
				t.Errorf("the job failed with %s, want %s", got, tt.reason)
			}
			if end := seen.Pods[0].Status.ContainerStatuses[0].State.Terminated; (end != nil) != (tt.code != 0) || end != nil && end.ExitCode != tt.code {
				t.Errorf("the benchmark ended with %+v, want exit code %d", end, tt.code)
			}
			awaitNoGroup(t, groupOf(t, filepath.Join(command[3], "r1-1")))
			if err := c.Delete(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			awaitGone(t, c, r)
		})
	}
}

// groupOf returns the ID of the process group of the attempt in a folder of an engine.
func groupOf(t *testing.T, folder string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// awaitNoGroup waits until no process of a group runs. One that was killed may wait for who adopted it.
func awaitNoGroup(t *testing.T, id int) {
	t.Helper()
	var left []string
	for late := time.Now().Add(30 * time.Second); time.Now().Before(late); time.Sleep(10 * time.Millisecond) {
		left = nil
		all, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, file := range all {
			text, _ := os.ReadFile(file) // it may have ended
			_, rest, _ := strings.Cut(string(text), ") ")
			if f := strings.Fields(rest); len(f) > 2 && f[0] != "Z" && f[2] == strconv.Itoa(id) {
				left = append(left, string(text))
			}
		}
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("processes are left: %q", left)
}

// startOther starts a process in a group of its own, and returns it and when it started, in ticks since the boot.
func startOther(t *testing.T) (p *os.Process, start string) {
	t.Helper()
	other := exec.CommandContext(t.Context(), "sleep", "600")
	other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(other.Process.Pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return other.Process, strings.Fields(rest)[19]
}

// The ID of an attempt's process may be that of another process later, after a restart of the machine for example.
func TestTheSampleEngineSignalsNoProcessThatHasTheIDLater(t *testing.T) {
	t.Parallel()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		tooltest.Missing(t, "a process is known by its boot on Linux alone")
	}
	for name, born := range map[string]func(start string) string{
		"after another boot":    func(start string) string { return "00000000-0000-4000-8000-000000000000 " + start },
		"later in the same one": func(string) string { return strings.TrimSpace(string(boot)) + " 1" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := sample(t)
			c := open(t, executable.Settings{Command: command, Poll: 10 * time.Millisecond})
			j := job("r2", "exit 0")
			if err := c.Create(t.Context(), j); err != nil {
				t.Fatal(err)
			}
			r := cluster.Ref{Run: "r2", Attempt: 1, Scope: "default", Job: j.Name}
			await(t, c, r, func(s cluster.Snapshot) bool { return s.Pods[0].Status.Phase == corev1.PodSucceeded })
			folder := filepath.Join(command[3], "r2-1")
			awaitNoGroup(t, groupOf(t, folder))
			other, start := startOther(t)
			if err := errors.Join(os.WriteFile(folder+"/pid", []byte(strconv.Itoa(other.Pid)), 0o600),
				os.WriteFile(folder+"/born", []byte(born(start)+"\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
			if err := c.Delete(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			awaitGone(t, c, r)
			if ended, err := syscall.Wait4(other.Pid, nil, syscall.WNOHANG, nil); ended != 0 || err != nil {
				t.Errorf("the other process has ended: %d, %v", ended, err)
			}
		})
	}
}

// awaitGone observes until an attempt is gone.
func awaitGone(t *testing.T, c *executable.Cluster, r cluster.Ref) {
	t.Helper()
	for late := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, err := c.Observe(t.Context(), r)
		if errors.Is(err, cluster.ErrNotFound) {
			return
		}
		if err != nil || time.Now().After(late) {
			t.Fatalf("it is not gone: %v", err)
		}
	}
}

// await observes until ok returns true.
func await(t *testing.T, c *executable.Cluster, r cluster.Ref, ok func(cluster.Snapshot) bool) cluster.Snapshot {
	t.Helper()
	for late := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		seen, err := c.Observe(t.Context(), r)
		if err == nil && ok(seen) {
			return seen
		}
		if time.Now().After(late) {
			t.Fatalf("not seen in time: %+v, %v", seen, err)
		}
	}
}
