package real_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

// entryImage is an image whose own entrypoint is a benchmark.
const entryImage = "docker.io/local/entrypoint:1"

// counted is how many lines with a metric the entrypoint writes.
const counted = 60

// entryProgram is that entrypoint.
const entryProgram = `package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	fmt.Fprintln(os.Stderr, "to standard error")
	for n := range 60 {
		fmt.Printf("n=%d\n", n)
		time.Sleep(200 * time.Millisecond)
	}
	fmt.Print("the last line has no end")
}
`

// importEntryImage brings entryImage to the nodes.
func importEntryImage(t *testing.T, testCluster *testbed.Cluster) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": entryProgram, "go.mod": "module entry\n\ngo 1.25\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", "entry", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	tar := filepath.Join(dir, "image.tar")
	if err := kit.Image(t.Context(), tar, "one", "-ref", entryImage, "-entrypoint", "/entry", "-user", "65532:65532", dir+"/entry=/entry"); err != nil {
		t.Fatal(err)
	}
	if err := testCluster.Import(t.Context(), tar); err != nil {
		t.Fatal(err)
	}
}

const entryDescriptor = `spec_version = "1.0"
[info]
description = "an image's own entrypoint"
[hardware]
cpus = "50m"
memory = "64Mi"
[env]
docker_image = "local/entrypoint:1"
[[output.metrics]]
name = "n"
units = "count"
pattern = 'n=(\d+)'
`

// TestTheOutputOfAnImagesEntrypointIsReadAlsoWhenThePlatformIsKilled runs an image
// as it is, and kills the platform while it writes.
func TestTheOutputOfAnImagesEntrypointIsReadAlsoWhenThePlatformIsKilled(t *testing.T) {
	t.Parallel()
	testCluster := testbed.Kubernetes(t)
	if !testCluster.Own {
		t.Skip("pods of a cluster elsewhere do not reach this machine: the platform would have to run in there")
	}
	scope, data := testCluster.Namespace(t), filepath.Join(t.TempDir(), "data")
	args := []string{"--kubeconfig", account(t, testCluster, scope, "platform", "executor", "watcher"), "--kube-namespace", scope, "--pod-image", podImage}
	b := build(t, testCluster)
	importEntryImage(t, testCluster)
	w := fixture{startIn(t, b, data, args...), testCluster, scope}
	run, err := w.submit(t.Context(), filepath.Join(t.TempDir(), "run.toml"), entryDescriptor)
	if err != nil {
		t.Fatal(err)
	}
	w.awaitSamples(t, run, 10)
	w.process.Kill(t)
	w.platform = startIn(t, b, data, args...)
	if out, code := w.baictl(t, "watch", run); code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, out, testCluster.Run(t, "-n", scope, "describe", "pods"))
	}
	w.wantAllWritten(t, run)
	why, _ := w.baictl(t, "why", run)
	t.Log(why)
	if !strings.Contains(strings.Join(strings.Fields(why), " "), "container's log") {
		t.Error("the weaker promise is not stated")
	}
	awaitCleared(t, testCluster, scope)
	wantNothingForbidden(t, calls(t, testCluster, scope, "platform"))
}

// awaitSamples waits until that many samples of a run are stored.
func (w fixture) awaitSamples(t *testing.T, run string, samples int) {
	t.Helper()
	for late := time.Now().Add(waitTimeout); ; time.Sleep(300 * time.Millisecond) {
		if n, err := w.count(t.Context(), run); err == nil && n >= samples {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("not %d samples in time\n%s", samples, w.cluster.Run(t, "-n", w.scope, "describe", "pods"))
		}
	}
}

// wantAllWritten checks that each line and sample is stored, once and in order.
func (w fixture) wantAllWritten(t *testing.T, run string) {
	t.Helper()
	const apart = "to standard error" // no order is kept between it and the rest
	var want []string
	for n := range counted {
		want = append(want, fmt.Sprintf("n=%d", n))
	}
	want = append(want, "the last line has no end")
	out, _ := w.baictl(t, "logs", run)
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	i := slices.Index(lines, apart)
	if i < 0 {
		t.Fatalf("its log lacks %q:\n%s", apart, out)
	}
	lines = slices.Delete(lines, i, i+1)
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("its log (-want +got):\n%s", diff)
	}
	values := strings.Fields(w.values(t, run)["n"])
	numbers := make([]string, 0, counted)
	for n := range counted {
		numbers = append(numbers, fmt.Sprint(n))
	}
	if !slices.Equal(values, numbers) {
		t.Errorf("its samples are %v", values)
	}
}
