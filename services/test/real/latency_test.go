package real_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/test/testbed"
)

// mostMore is how much longer than the creation of the same Job without the platform
// it may take.
const mostMore = 150 * time.Millisecond

// TestAJobIsCreatedSoonAfterItsSubmission takes, in turn, the time from a call to
// the creation of the Job that it leads to, as the API server's audit log has it:
// of a submission and of a client's create, both in this process, and of `baictl
// submit` and of `kubectl create`, both as processes of their own.
func TestAJobIsCreatedSoonAfterItsSubmission(t *testing.T) {
	t.Parallel()
	const rounds = 40
	testCluster := testbed.Simulated(t)
	f := newMeteredFleet(t, testCluster, "--slots", fmt.Sprint(3*rounds))
	ctx, cancel := context.WithTimeout(t.Context(), 14*time.Minute)
	defer cancel()
	l := &latencies{meteredFleet: f, dir: t.TempDir()}
	if err := l.warm(ctx); err != nil {
		t.Fatal(err)
	}
	for range rounds {
		for _, way := range l.ways() {
			took, err := l.take(ctx, way)
			if err != nil {
				t.Fatalf("%s: %v", way.name, err)
			}
			l.took[way.name] = append(l.took[way.name], took)
		}
	}
	t.Logf("from the call to the creation of the Job, %d times each in turn:\n%s", rounds, l.table())
	for _, pair := range [][2]string{{bySubmit, byCreate}, {byBaictl, byKubectl}} {
		if more := medianDuration(l.took[pair[0]]) - medianDuration(l.took[pair[1]]); more > mostMore {
			t.Errorf("%s takes %s more than %s, want %s at most", pair[0], more, pair[1], mostMore)
		}
	}
}

// Ways to have a Job created.
const (
	bySubmit  = "SubmitRun by gRPC"
	byCreate  = "create by client-go"
	byBaictl  = "baictl submit"
	byKubectl = "kubectl create -f"
)

// latencies takes times.
type latencies struct {
	*meteredFleet

	dir   string
	file  string // descriptor
	admin *kube.Cluster
	job   *batchv1.Job // as the platform makes it
	count int
	took  map[string][]time.Duration
}

// way is one way to have a Job created. It returns the Job's name.
type way struct {
	name string
	call func(context.Context) (string, error)
}

func (l *latencies) ways() []way {
	return []way{{bySubmit, l.submitted}, {byCreate, l.created}, {byBaictl, l.byBaictl}, {byKubectl, l.byKubectl}}
}

// take returns the time from the call to the creation.
func (l *latencies) take(ctx context.Context, w way) (time.Duration, error) {
	begun := time.Now()
	job, err := w.call(ctx)
	if err != nil {
		return 0, err
	}
	at, err := l.cluster.Created(ctx, "jobs", job)
	return at.Sub(begun), err
}

// warm makes the platform create a Job, as a template for others.
func (l *latencies) warm(ctx context.Context) (err error) {
	l.took, l.file = map[string][]time.Duration{}, filepath.Join(l.dir, "run.toml")
	if err := os.WriteFile(l.file, []byte(waiting), 0o600); err != nil {
		return err
	}
	name, err := l.submitted(ctx)
	if err != nil {
		return err
	}
	if _, err := l.cluster.Created(ctx, "jobs", name); err != nil {
		return err
	}
	l.job = &batchv1.Job{}
	text := l.cluster.Run(l.t, "-n", l.scope, "get", "job", name, "-o", "json") //nolint:contextcheck // it is the test's
	if err := json.Unmarshal([]byte(text), l.job); err != nil {
		return err
	}
	if l.admin, err = kube.New(kube.Settings{Kubeconfig: l.cluster.Kubeconfig, Namespace: l.scope}, nil); err != nil {
		return err
	}
	l.t.Cleanup(l.admin.Close)
	_, err = l.created(ctx) // opens the connection
	return err
}

// waiting is a run whose pod has no node.
const waiting = `spec_version = "0.1.0"
[info]
description = "waits for a node"
[hardware]
cpus = "1"
strategy = "single_node"
[env]
docker_image = "debian:12-slim"
[ml]
benchmark_code = "true"
`

func (l *latencies) submitted(ctx context.Context) (string, error) {
	run, err := l.submitText(ctx, waiting)
	return "bai-" + run + "-1", err
}

func (l *latencies) byBaictl(ctx context.Context) (string, error) {
	out, code, err := l.try(ctx, "submit", l.file, "-o", "name")
	if err != nil || code != 0 {
		return "", fmt.Errorf("exit code %d: %w\n%s", code, err, out)
	}
	return "bai-" + runID.FindString(out) + "-1", nil
}

// copied is the platform's Job once more, of another name.
func (l *latencies) copied() *batchv1.Job {
	l.count++
	j := l.job.DeepCopy()
	j.TypeMeta = metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}
	j.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprintf("copy-%d", l.count), Namespace: l.scope, Labels: l.job.Labels, Annotations: l.job.Annotations}
	j.Spec.Selector, j.Status = nil, batchv1.JobStatus{}
	j.Labels[cluster.LabelRun] = j.Name
	j.Spec.Template.Labels = j.Labels
	return j
}

func (l *latencies) created(ctx context.Context) (string, error) {
	j := l.copied()
	return j.Name, l.admin.Create(ctx, j)
}

func (l *latencies) byKubectl(ctx context.Context) (string, error) {
	j := l.copied()
	text, err := json.Marshal(j)
	if err != nil {
		return "", err
	}
	file := filepath.Join(l.dir, j.Name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, l.cluster.Kubectl, "--kubeconfig", l.cluster.Kubeconfig, "create", "-f", file).CombinedOutput() //nolint:gosec // the test's
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return j.Name, nil
}

func (l *latencies) table() string {
	var table strings.Builder
	lines := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(lines, "\tmedian\tp90\tmost\t")
	for _, w := range l.ways() {
		all := slices.Sorted(slices.Values(l.took[w.name]))
		fmt.Fprintf(lines, "%s\t%s\t%s\t%s\t\n", w.name, formatMillis(medianDuration(all)), formatMillis(all[len(all)*9/10]), formatMillis(all[len(all)-1]))
	}
	_ = lines.Flush()
	return table.String()
}

func formatMillis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}

// medianDuration is the median.
func medianDuration(all []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(all))[len(all)/2]
}
