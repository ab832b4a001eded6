package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
	"github.com/benchmark-ai/bai/services/test/testbed/kubecluster"
)

const (
	podsImage = "docker.io/local/bai-pod:bench"
	workImage = "docker.io/local/work:bench" // this program, as /work, and nothing else
	namespace = "default"
)

// nodes is a Kubernetes with two nodes, and a platform whose pods run there.
type nodes struct {
	info     kubecluster.Info
	platform *platform
	count    int // Jobs made so far
}

// withNodes boots the cluster, starts the platform, and ends both after use.
func withNodes(ctx context.Context, b bench, use func(*nodes) error) (err error) {
	info, stop, err := testbed.Boot(ctx, kubecluster.Settings{Name: fmt.Sprintf("bench-%d", os.Getpid()), Nodes: 2}, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := importImages(ctx, b, info); err != nil {
		return err
	}
	return withPlatform(ctx, b, func(p *platform) error {
		return use(&nodes{info: info, platform: p})
	}, "--kubeconfig", info.Kubeconfig, "--kube-namespace", namespace, "--pod-image", podsImage)
}

// importImages imports the images of pods, and this program, on the nodes.
func importImages(ctx context.Context, b bench, info kubecluster.Info) error {
	dir, err := os.MkdirTemp("", "bai-bench-images-")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	pods, work := filepath.Join(dir, "pods.tar"), filepath.Join(dir, "work.tar")
	return errors.Join(
		kit.Image(ctx, pods, "one", "-ref", podsImage, "-user", "65532:65532", b.bin+"/bai-pod=/bai-pod",
			b.bin+"/bai-pod-ship=/bai-pod-ship"),
		kit.Image(ctx, work, "one", "-ref", workImage, self+"=/work"),
		info.Import(ctx, pods, work),
		os.RemoveAll(dir))
}

// onKubernetes observes runs in pods. Without the platform is a Job of the same command,
// beside the same cluster, broker and store, which are idle then.
func (o *observer) onKubernetes(ctx context.Context) (results []observed, err error) {
	return results, withNodes(ctx, o.bench, func(n *nodes) error {
		results, err = o.cases(ctx, "bed", n.bare, n.run)
		return err
	})
}

// bare performs work in a plain Job.
func (n *nodes) bare(ctx context.Context, w work, amount int) (float64, error) {
	_, text, err := n.perform(ctx, plainJob("-work", w.name, "-amount", strconv.Itoa(amount)))
	if err != nil {
		return 0, err
	}
	return tookIn([]byte(text))
}

// run performs work as a run.
func (n *nodes) run(ctx context.Context, w work, amount int) (float64, error) {
	return n.platform.perform(ctx, podDescriptor(fmt.Sprintf("/work -work %s -amount %d", w.name, amount))+tookMetric)
}

// podDescriptor is a descriptor of a run of this program's image.
func podDescriptor(command string) string {
	return fmt.Sprintf(`spec_version = "0.1.0"
[info]
description = "a measurement"
[hardware]
strategy = "single_node"
[env]
docker_image = %q
[ml]
benchmark_code = %q
`, workImage, command)
}

// plainJob is a Job with one container that runs this program.
func plainJob(args ...string) *batchv1.Job {
	never := int32(0)
	return &batchv1.Job{Spec: batchv1.JobSpec{BackoffLimit: &never, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name: "benchmark", Image: workImage, ImagePullPolicy: corev1.PullNever,
			Command: append([]string{"/work"}, args...),
		}},
	}}}}
}

// perform creates a Job, waits for its end, deletes it, and returns its creation time and
// the output of its container benchmark.
func (n *nodes) perform(ctx context.Context, job *batchv1.Job) (created time.Time, text string, err error) {
	n.count++
	job.TypeMeta = metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}
	job.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprintf("bare-%d", n.count), Namespace: namespace}
	object, err := json.Marshal(job)
	if err != nil {
		return created, "", err
	}
	file := filepath.Join(filepath.Dir(n.platform.dir), job.Name+".json")
	if err := os.WriteFile(file, object, 0o600); err != nil {
		return created, "", err
	}
	if _, err := n.kubectl(ctx, "create", "-f", file); err != nil {
		return created, "", err
	}
	defer func() {
		_, failed := n.kubectl(ctx, "delete", "-f", file, "--wait=false")
		err = errors.Join(err, failed)
	}()
	if _, err := n.kubectl(ctx, "wait", "--for=condition=complete", "--timeout=5m", "job/"+job.Name); err != nil {
		return created, "", err
	}
	if created, err = n.info.Created(ctx, "jobs", job.Name); err != nil {
		return created, "", err
	}
	text, err = n.kubectl(ctx, "logs", "job/"+job.Name, "-c", "benchmark")
	return created, text, err
}

func (n *nodes) kubectl(ctx context.Context, args ...string) (string, error) {
	return output(ctx, n.info.Kubectl, append([]string{"--kubeconfig", n.info.Kubeconfig, "-n", namespace}, args...)...)
}

var now = regexp.MustCompile(`now=(\d+)`)

// nowIn finds the time of the first instruction in a container's output, in nanoseconds
// since 1970.
func nowIn(text string) (int64, error) {
	m := now.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("the container printed no time, but %q", text)
	}
	return strconv.ParseInt(m[1], 10, 64)
}
