package real_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
	"github.com/benchmark-ai/bai/services/test/testbed/process"
)

// podImage is the image of ours that the suite builds.
const podImage = "docker.io/benchmark-ai/bai-pod:real"

// built has the folders of the suite's programs and images.
type built struct{ bin, pod string }

// sharedBuild is where the suite's programs lie, built once by whoever needs them
// first.
var sharedBuild struct {
	dir  string
	once sync.Once
	err  error
}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "bai-real-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		sharedBuild.dir = dir
		return m.Run()
	}())
}

// build builds the programs as they are shipped, and the image that brings ours
// into pods. The cluster has it when build returns.
func build(t *testing.T, testCluster *testbed.Cluster) built {
	t.Helper()
	b := built{bin: filepath.Join(sharedBuild.dir, "bin"), pod: filepath.Join(sharedBuild.dir, "bai-pod.tar")}
	sharedBuild.once.Do(func() {
		sharedBuild.err = process.Build(b.bin)
		if sharedBuild.err == nil {
			sharedBuild.err = kit.Image(context.Background(), b.pod, append([]string{"one", "-ref", podImage}, b.podImageArgs()...)...)
		}
	})
	if sharedBuild.err != nil {
		t.Fatal(sharedBuild.err)
	}
	importImage(t, testCluster, b.pod)
	return b
}

// importedImages are the images that nodes have, each brought there by whoever needs it
// first.
var importedImages sync.Map // by cluster and tar → func() error

// importImage brings an image to all nodes of a cluster, once.
func importImage(t *testing.T, testCluster *testbed.Cluster, tar string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // others wait for it too
	once, _ := importedImages.LoadOrStore(testCluster.Dir+" "+tar, sync.OnceValue(func() error { return testCluster.Import(ctx, tar) }))
	bring, _ := once.(func() error)
	if err := bring(); err != nil {
		t.Fatal(err)
	}
}

// podImageArgs are the arguments that make an image of the pods' programs.
func (b built) podImageArgs() []string {
	return []string{"-user", "65532:65532", b.bin + "/bai-pod=/bai-pod", b.bin + "/bai-pod-ship=/bai-pod-ship"}
}

// platform is a `bai standalone` whose pods run in Kubernetes.
type platform struct {
	built

	server  string
	process *process.Process
}

var listens = regexp.MustCompile(`listens on (\S+)`)

// start starts a platform that ends with the test.
func start(t *testing.T, b built, args ...string) platform {
	t.Helper()
	return startIn(t, b, filepath.Join(t.TempDir(), "data"), args...)
}

// startIn is start with a data directory that the test chooses.
func startIn(t *testing.T, b built, data string, args ...string) platform {
	t.Helper()
	bai := process.New("the platform", "", append([]string{filepath.Join(b.bin, "bai"), "standalone", "--data", data, "--listen", "127.0.0.1:0"}, args...)...)
	bai.Begin(t)
	bai.EndWith(t)
	return platform{b, bai.AwaitOutput(t, 0, listens)[1], bai}
}

// baictl runs baictl, and returns its output and its exit code.
func (p platform) baictl(t *testing.T, args ...string) (string, int) {
	t.Helper()
	out, code, err := p.try(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out, code
}

// try is baictl with a context, for use by several goroutines. Where a platform takes the connection of a verb that only reads and does not
// answer in time, as on a machine that is slow, it is asked again.
func (p platform) try(ctx context.Context, args ...string) (string, int, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	for {
		out, code, err := p.tryOnce(ctx, args)
		reads := slices.Contains([]string{"get", "metrics", "watch"}, args[0])
		if !reads || !strings.Contains(out, "it takes connections and does not answer") || ctx.Err() != nil {
			return out, code, err
		}
		time.Sleep(time.Second)
	}
}

func (p platform) tryOnce(ctx context.Context, args []string) (string, int, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, "baictl"), append([]string{"--server", p.server}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+sharedBuild.dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", 0, fmt.Errorf("baictl: %w", err)
	}
	return string(out), cmd.ProcessState.ExitCode(), nil
}

func TestHelloWorldFromSubmitToMetrics(t *testing.T) {
	t.Parallel()
	testCluster := testbed.Kubernetes(t)
	if !testCluster.Own {
		t.Skip("pods of a cluster elsewhere do not reach this machine: the platform would have to run in there")
	}
	scope := testCluster.Namespace(t)
	testCluster.Run(t, "label", "node", "--all", "--overwrite", "node.kubernetes.io/instance-type=t3.small")
	config := account(t, testCluster, scope, "platform", "executor", "watcher")
	p := start(t, build(t, testCluster), "--kubeconfig", config, "--kube-namespace", scope, "--pod-image", podImage)

	began := time.Now()
	out, code := p.baictl(t, "run", "../../../sample-benchmarks/hello-world/descriptor.toml")
	if code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, out, testCluster.Run(t, "-n", scope, "describe", "pods"))
	}
	t.Logf("submit to end %s, of which the benchmark sleeps 5 s\n%s", time.Since(began).Round(time.Millisecond), out)
	id := regexp.MustCompile(`run (\w{26})`).FindStringSubmatch(out)
	if id == nil {
		t.Fatalf("no run in %q", out)
	}
	if logs, _ := p.baictl(t, "logs", id[1]); !strings.Contains(logs, "hello, world") || !strings.Contains(logs, "goodbye") {
		t.Errorf("the log is\n%s", logs)
	}
	text, _ := p.baictl(t, "metrics", id[1], "-o", "json")
	if n := samples(t, text, "elapsed"); n != 5 {
		t.Errorf("%d samples, want 5:\n%s", n, text)
	}
	awaitCleared(t, testCluster, scope)
	writes := slices.DeleteFunc(calls(t, testCluster, scope, "platform"), func(r record) bool {
		return slices.Contains([]string{"get", "list", "watch"}, r.Verb)
	})
	t.Logf("%d API writes:\n%s", len(writes), formatCalls(writes))
	if len(writes) > 6 {
		t.Errorf("%d API writes for a run, want 6 at most", len(writes))
	}
	wantNothingForbidden(t, calls(t, testCluster, scope, "platform"))
}

func TestAPlatformThatIsKilledComesBackToItsPods(t *testing.T) {
	t.Parallel()
	testCluster := testbed.Kubernetes(t)
	if !testCluster.Own {
		t.Skip("pods of a cluster elsewhere do not reach this machine: the platform would have to run in there")
	}
	scope, data := testCluster.Namespace(t), filepath.Join(t.TempDir(), "data")
	args := []string{"--kubeconfig", account(t, testCluster, scope, "platform", "executor", "watcher"), "--kube-namespace", scope, "--pod-image", podImage}
	b := build(t, testCluster)
	w := fixture{startIn(t, b, data, args...), testCluster, scope}
	run, err := w.submit(t.Context(), filepath.Join(t.TempDir(), "run.toml"), failureCase{code: gatedCommand}.descriptor())
	if err == nil {
		err = w.awaitRunning(t.Context(), run)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.process.Kill(t)

	w.platform = startIn(t, b, data, args...)
	if err := w.release(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if out, code := w.baictl(t, "watch", run); code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, out, testCluster.Run(t, "-n", scope, "describe", "pods"))
	}
	if n, err := w.count(t.Context(), run); n != 6 || err != nil {
		t.Errorf("%d samples, want 6; %v", n, err)
	}
	awaitCleared(t, testCluster, scope)
	made := 0
	for _, r := range calls(t, testCluster, scope, "platform") {
		if r.Verb == "create" && r.ObjectRef.Resource == "jobs" {
			made++
		}
	}
	if made != 1 {
		t.Errorf("the job was created %d times", made)
	}
}

// samples counts those of a metric, one JSON object a line.
func samples(t *testing.T, text, metric string) (n int) {
	t.Helper()
	for line := range strings.Lines(text) {
		var s struct {
			Metric string
			Value  float64
		}
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if s.Metric == metric && s.Value > 0 {
			n++
		}
	}
	return n
}

const dataDescriptor = `spec_version = "0.1.0"
[info]
description = "counts the bytes of a data set"
[hardware]
cpus = "100m"
memory = "64Mi"
strategy = "single_node"
[env]
docker_image = "debian:12-slim"
[[data.sources]]
src = %q
path = "/data/set"
[ml]
benchmark_code = "sh -c 'echo size=$(wc -c < /data/set); mkdir -p /tmp/results; echo kept > /tmp/results/file'"
[output]
[[output.artifacts]]
path = "/tmp/results"
max_size = "1MiB"
[[output.metrics]]
name = "size"
units = "bytes"
pattern = 'size=(\d+)'
`

func TestADataSetReachesThePodAndAFileComesBack(t *testing.T) {
	t.Parallel()
	testCluster := testbed.Kubernetes(t)
	if !testCluster.Own {
		t.Skip("pods of a cluster elsewhere do not reach this machine: the platform would have to run in there")
	}
	scope := testCluster.Namespace(t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("benchmark"), 100_000))
	}))
	t.Cleanup(web.Close)
	file := filepath.Join(t.TempDir(), "data.toml")
	if err := os.WriteFile(file, fmt.Appendf(nil, dataDescriptor, web.URL+"/set"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, build(t, testCluster), "--kubeconfig", account(t, testCluster, scope, "platform", "executor", "watcher"), "--kube-namespace", scope, "--pod-image", podImage)
	out, code := p.baictl(t, "run", file)
	if code != 0 || !strings.Contains(out, "1 sample,") {
		t.Fatalf("exit code %d\n%s\n%s", code, out, testCluster.Run(t, "-n", scope, "describe", "pods"))
	}
	t.Log(out)
	id := regexp.MustCompile(`run (\w{26})`).FindStringSubmatch(out)
	if files, code := p.baictl(t, "artifacts", "list", id[1]); code != 0 || !strings.Contains(files, "file") {
		t.Errorf("the files that were kept, exit code %d:\n%s", code, files)
	}
	awaitCleared(t, testCluster, scope)
}

// awaitCleared waits until no object of a run is left.
func awaitCleared(t *testing.T, testCluster *testbed.Cluster, scope string) {
	t.Helper()
	for late := time.Now().Add(waitTimeout); ; time.Sleep(kubectlInterval) {
		left := testCluster.Run(t, "-n", scope, "get", "jobs,pods,services,configmaps,secrets,networkpolicies", "-l", "benchmark-ai.dev/run", "-o", "name")
		if left == "" {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("left of the run:\n%s", left)
		}
	}
}
