//go:build linux

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// harness is a local cluster, with the output of its pods.
type harness struct {
	*local.Cluster

	dir     string
	brokers []string

	mu    sync.Mutex
	lines map[string]map[int64]string // by run and sequence number
	ends  map[string]*event.End       // end of the output, by run
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	b := &harness{
		dir: t.TempDir(), brokers: kafkatest.Start(t, event.Topics()...).Addrs,
		lines: map[string]map[int64]string{}, ends: map[string]*event.End{},
	}
	var err error
	if b.Cluster, err = local.New(local.Settings{Dir: b.dir, PodBinary: binary}); err != nil {
		t.Fatal(err)
	}
	bus, err := kafka.NewBus(kafka.Settings{Brokers: b.brokers}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	part := bus.Consume("test", service.On(b.onLogs))
	go func() { done <- part(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		bus.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := b.Close(ctx, false); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *harness) onLogs(_ context.Context, l event.Logs) ([]event.Event, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.Stream.Kind != event.StreamOutput {
		return nil, nil
	}
	if b.lines[l.Run] == nil {
		b.lines[l.Run] = map[int64]string{}
	}
	for _, line := range l.Lines {
		b.lines[l.Run][line.Seq] = line.Text
	}
	if l.End != nil {
		b.ends[l.Run] = l.End
	}
	return nil, nil
}

// end returns the end of a run's output, if it has arrived, and the number of its
// lines.
func (b *harness) end(run string) (*event.End, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ends[run], len(b.lines[run])
}

// launch creates the objects of a run, as the executor does.
func (b *harness) launch(t *testing.T, run string, command ...string) {
	t.Helper()
	h := event.NewHeader("h"+run, run, "team", "owner", time.Now())
	config, err := json.Marshal(pod.Collect{Header: h, Role: "benchmark", Container: cluster.ContainerBenchmark, Brokers: b.brokers})
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: run, Namespace: "default", Labels: map[string]string{cluster.LabelRun: run, cluster.LabelAttempt: "1"}}
	secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta, Data: map[string][]byte{pod.CollectFile: config}}
	for _, o := range []cluster.Object{secret, b.job(meta, command)} {
		if err := b.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

func (*harness) job(meta metav1.ObjectMeta, command []string) *batchv1.Job {
	zero, grace, always := int32(0), int64(20), corev1.ContainerRestartPolicyAlways
	mounts := []corev1.VolumeMount{{Name: "bai", MountPath: pod.Dir}}
	uid := []corev1.EnvVar{{Name: pod.EnvPodUID, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"}}}}
	program := pod.PathIn("", pod.Binary)
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: meta,
		Spec: batchv1.JobSpec{BackoffLimit: &zero, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
				Volumes: []corev1.Volume{
					{Name: "bai", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
					{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: meta.Name}}},
				},
				InitContainers: []corev1.Container{
					{Name: cluster.ContainerInstall, Command: []string{pod.ImageBinary, "install", program}, VolumeMounts: mounts},
					{
						Name: cluster.ContainerCollect, Command: []string{pod.PathIn("", pod.ShipBinary), "collect"}, RestartPolicy: &always, Env: uid,
						VolumeMounts: []corev1.VolumeMount{mounts[0], {Name: "secret", MountPath: pod.SecretDir, ReadOnly: true}},
					},
				},
				Containers: []corev1.Container{{Name: cluster.ContainerBenchmark, Command: append([]string{program, "exec", "--"}, command...), VolumeMounts: mounts}},
			},
		}},
	}
}

func ref(run string) cluster.Ref {
	return cluster.Ref{Run: run, Attempt: 1, Scope: "default", Job: run}
}

// eventually waits until ok returns true.
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

// succeeded waits for a run's success.
func (b *harness) succeeded(t *testing.T, run string) cluster.Snapshot {
	t.Helper()
	var seen cluster.Snapshot
	eventually(t, "the end of "+run, func() (over bool) {
		var err error
		if seen, err = b.Observe(t.Context(), ref(run)); err != nil {
			t.Fatal(err)
		}
		return seen.Job.Status.Succeeded+seen.Job.Status.Failed > 0
	})
	if seen.Job.Status.Succeeded != 1 {
		t.Errorf("%s ended as %+v", run, seen.Pods[0].Status.ContainerStatuses)
	}
	return seen
}

func TestARunThatIsOverAtOnceIsShippedWhole(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	for i := range 10 {
		run := fmt.Sprintf("short%d", i)
		b.launch(t, run, "echo", "hello")
		b.succeeded(t, run)
		eventually(t, "the end of what "+run+" wrote", func() bool {
			end, lines := b.end(run)
			return end != nil && end.Count == 1 && lines == 1
		})
	}
}

func TestACollectorThatIsKilledLosesNothing(t *testing.T) {
	t.Parallel()
	const lines = 3000
	b := newHarness(t)
	killed := filepath.Join(t.TempDir(), "killed") // the benchmark writes the last lines once the collector has been killed
	b.launch(t, "killed", "sh", "-c", "i=0; while [ $i -lt "+strconv.Itoa(lines)+" ]; do i=$((i+1)); echo line $i; [ $((i % 300)) -eq 0 ] && sleep 0.1; "+
		"while [ $i -eq 2700 ] && [ ! -e "+killed+" ]; do sleep 0.05; done; done")
	for range 3 {
		eventually(t, "it is killed", func() bool { return kill(t, "\x00collect\x00", b.dir) })
	}
	if err := os.WriteFile(killed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	seen := b.succeeded(t, "killed")
	if n := seen.Pods[0].Status.InitContainerStatuses[1].RestartCount; n < 1 {
		t.Errorf("the collector was started again %d times", n)
	}
	eventually(t, "the end of what it wrote", func() bool {
		end, n := b.end("killed")
		return end != nil && end.Count == lines && n == lines
	})
}

// kill kills the process with these arguments and this directory among its mounts, and
// reports whether there was one.
func kill(t *testing.T, args, dir string) bool {
	t.Helper()
	for _, p := range shimapi.Processes() {
		proc := filepath.Join("/proc", strconv.Itoa(p.PID))
		line, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
		mounts, _ := os.ReadFile(filepath.Join(proc, "mountinfo"))
		if !p.Zombie && bytes.Contains(line, []byte(args)) && bytes.Contains(mounts, []byte(dir)) {
			return syscall.Kill(p.PID, syscall.SIGKILL) == nil
		}
	}
	return false
}
