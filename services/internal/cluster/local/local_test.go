//go:build linux

package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/clustertest"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// podBinary is built once for all tests.
var podBinary string

// Variables of the tests that run this program once more.
const (
	envBinary   = "BAI_TEST_POD_BINARY"
	envPlatform = "BAI_TEST_PLATFORM" // a directory: be a platform there until killed
	envGangs    = "BAI_TEST_GANGS"    // not empty: the process creates Jobs of several pods
	envServer   = "BAI_TEST_SERVER"   // an address: answer there until killed
	envLink     = "BAI_TEST_LINK"     // the name of a link: print its MTU
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if at := os.Getenv(envServer); at != "" {
		return serve(at)
	}
	if name := os.Getenv(envLink); name != "" {
		return printMTU(name)
	}
	if podBinary = os.Getenv(envBinary); podBinary != "" {
		if dir := os.Getenv(envPlatform); dir != "" {
			return crashingPlatform(dir)
		}
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "bai-pod-*")
	if err == nil {
		defer os.RemoveAll(dir) //nolint:errcheck // the system's
		podBinary, err = clustertest.BuildPod(dir)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755) //nolint:gosec // for tests as another user
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// open opens a cluster; the end of the test closes it and ends its pods.
func open(t *testing.T, s local.Settings) *local.Cluster {
	t.Helper()
	s.PodBinary = podBinary
	c, err := local.New(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeCluster(t, c, false) })
	return c
}

func closeCluster(t *testing.T, c *local.Cluster, keep bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := c.Close(ctx, keep); err != nil {
		t.Errorf("close: %v", err)
	}
}

// forEachIsolation runs a test with namespaces and without.
func forEachIsolation(t *testing.T, test func(t *testing.T, s local.Settings)) {
	t.Helper()
	t.Parallel()
	for name, without := range map[string]bool{"with namespaces": false, "without namespaces": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, local.Settings{Dir: t.TempDir(), NoNamespaces: without})
		})
	}
}

// entrypointJob returns a Job as the platform makes it: it installs the pod binary, and runs the command under the entrypoint.
func entrypointJob(run string, command ...string) *batchv1.Job {
	zero, grace := int32(0), int64(2)
	labels := map[string]string{cluster.LabelRun: run, cluster.LabelAttempt: "1"}
	mounts := []corev1.VolumeMount{{Name: "bai", MountPath: pod.Dir}}
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: run, Namespace: "default", Labels: labels},
		Spec: batchv1.JobSpec{BackoffLimit: &zero, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
				Volumes: []corev1.Volume{{Name: "bai", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
				InitContainers: []corev1.Container{{
					Name: cluster.ContainerInstall, Command: []string{pod.ImageBinary, "install", pod.PathIn("", pod.Binary)}, VolumeMounts: mounts,
				}},
				Containers: []corev1.Container{{
					Name: cluster.ContainerBenchmark, VolumeMounts: mounts,
					Command: append([]string{pod.PathIn("", pod.Binary), "exec", "--"}, command...),
				}},
			},
		}},
	}
}

func refOf(j *batchv1.Job) cluster.Ref {
	return cluster.Ref{Run: j.Labels[cluster.LabelRun], Attempt: 1, Scope: j.Namespace, Job: j.Name}
}

func create(t *testing.T, c *local.Cluster, objects ...cluster.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatalf("create %s: %v", o.GetName(), err)
		}
	}
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not in time: %s", what)
		}
	}
}

// await observes a job until ok returns true, and returns the snapshot.
func await(t *testing.T, c *local.Cluster, j *batchv1.Job, what string, ok func(cluster.Snapshot) bool) (seen cluster.Snapshot) {
	t.Helper()
	eventually(t, what, func() bool {
		var err error
		if seen, err = c.Observe(t.Context(), refOf(j)); err != nil && !errors.Is(err, cluster.ErrNotFound) {
			t.Fatal(err)
		}
		return err == nil && ok(seen)
	})
	return seen
}

func benchmarkOf(s cluster.Snapshot) corev1.ContainerState {
	for _, p := range s.Pods {
		for _, c := range p.Status.ContainerStatuses {
			if c.Name == cluster.ContainerBenchmark {
				return c.State
			}
		}
	}
	return corev1.ContainerState{}
}

func running(s cluster.Snapshot) bool { return benchmarkOf(s).Running != nil }

// hasEnded reports whether the Job has ended, which is after the last of its pods.
func hasEnded(s cluster.Snapshot) bool {
	return s.Job != nil && slices.ContainsFunc(s.Job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

func isGone(t *testing.T, c *local.Cluster, j *batchv1.Job) func() bool {
	t.Helper()
	return func() bool {
		_, err := c.Observe(t.Context(), refOf(j))
		return errors.Is(err, cluster.ErrNotFound)
	}
}

// remove deletes a job and waits until it is gone.
func remove(t *testing.T, c *local.Cluster, j *batchv1.Job) {
	t.Helper()
	if err := c.Delete(t.Context(), refOf(j)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job is gone", isGone(t, c, j))
}

// processes returns the processes that have needle in their arguments.
func processes(t *testing.T, needle string) []int {
	t.Helper()
	var found []int
	for _, p := range shimapi.Processes() {
		b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "cmdline"))
		if !p.Zombie && bytes.Contains(b, []byte(needle)) {
			found = append(found, p.PID)
		}
	}
	return found
}

// wantNothingLeft fails the test if the cluster in dir left files, mounts or processes.
func wantNothingLeft(t *testing.T, dir string, needles ...string) {
	t.Helper()
	for _, sub := range []string{"pods", "live", "objects", "trash", "networks"} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil || len(entries) > 0 {
			t.Errorf("left in %s: %v (%v)", sub, entries, err)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), dir) {
		t.Errorf("left mounts in %s (%v)", dir, err)
	}
	for _, n := range append(needles, dir) {
		if pids := processes(t, n); len(pids) > 0 {
			t.Errorf("left processes of %q: %v", n, pids)
		}
	}
}

// shimOf returns the process that runs a job's pod.
func shimOf(t *testing.T, dir string, j *batchv1.Job) shimapi.State {
	t.Helper()
	var s shimapi.State
	if err := shimapi.Read(filepath.Join(dir, "live", string(j.UID)+".json"), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAClusterKeepsTheContract(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		clustertest.Run(t, clustertest.Suite{Scope: "default", NoNamespaces: s.NoNamespaces, New: func(t *testing.T) clustertest.Cluster {
			t.Helper()
			return open(t, local.Settings{Dir: t.TempDir(), NoNamespaces: s.NoNamespaces})
		}})
	})
}
