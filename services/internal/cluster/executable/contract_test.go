//go:build unix

package executable_test

import (
	"errors"
	"os"
	"path/filepath"
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
