package real_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

// torchImage is a small Debian with PyTorch.
const torchImage = "docker.io/local/torch:1"

const training = "../../../sample-benchmarks/training"

// TestTheTrainingSampleTrainsInAPod runs the sample in a pod whose image holds Debian's
// PyTorch, and compares its numbers with those of the script under the same package on
// this machine, and the recorded image with the node's.
func TestTheTrainingSampleTrainsInAPod(t *testing.T) {
	t.Parallel()
	const python = "/usr/bin/python3"
	w := newFixture(t, "[executor.pods]\ngrace = \"4s\"\n")
	if out, err := exec.CommandContext(t.Context(), python, "-c", "import torch").CombinedOutput(); err != nil {
		t.Skipf("%s has no PyTorch (apt-get install python3-torch): %v\n%s", python, err, out)
	}
	importDebianImage(t, w, kit.Debian{Ref: torchImage, Packages: "python3-torch"})
	data := httptest.NewServer(http.FileServer(http.Dir(training)))
	defer data.Close()
	out, code := w.baictl(t, "run", training+"/descriptor.toml", "--script", training, "--name", "training",
		"--set", "data.sources.0.src="+data.URL+"/digits.csv.gz", "--set", "env.docker_image="+torchImage, "--set", `env.vars.EPOCHS="3"`,
		"--set", "hardware.cpus=\"200m\"")
	if code != 0 {
		log, _ := w.baictl(t, "logs", "training")
		t.Fatalf("exit code %d\n%s\n%s", code, out, log)
	}
	if diff := cmp.Diff(trainByHand(t, python), w.trainingMetrics(t, "training")); diff != "" {
		t.Errorf("(-by hand +in the pod):\n%s", diff)
	}
	known, _ := w.baictl(t, "get", "training", "-o", "wide")
	t.Logf("%s\n%s", known, out)
	ran := regexp.MustCompile(`(?m)^Ran +(sha256:[0-9a-f]{64})$`).FindStringSubmatch(known)
	node, err := w.cluster.Inside(t.Context(), w.cluster.Nodes[0], "ctr", "-n", "k8s.io", "images", "ls")
	if err != nil || ran == nil || !strings.Contains(string(node), ran[1]) {
		t.Errorf("its image is %q, and the node has (%v)\n%s", ran, err, node)
	}
	awaitCleared(t, w.cluster, w.scope)
}

// trainingMetrics are the numbers of a run but for its speed, as "step name=value".
func (w fixture) trainingMetrics(t *testing.T, run string) []string {
	t.Helper()
	text, _ := w.baictl(t, "metrics", run, "-o", "json")
	var all []string
	for line := range strings.Lines(text) {
		var m struct {
			Metric string
			Value  float64
			Step   json.Number
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if m.Metric != "samples_per_second" && !strings.HasPrefix(m.Metric, "system.") {
			all = append(all, fmt.Sprintf("%s %s=%v", m.Step, m.Metric, m.Value))
		}
	}
	slices.Sort(all)
	return all
}

// trainByHand runs the script in a shell's way.
func trainByHand(t *testing.T, python string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "metrics")
	cmd := exec.CommandContext(t.Context(), python, "train.py")
	cmd.Dir = training
	cmd.Env = append(os.Environ(), "BENCHMARK_AI_FILE="+file, "EPOCHS=3")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		for _, name := range []string{"loss", "accuracy"} {
			all = append(all, fmt.Sprintf("%v %s=%v", m["@step"], name, m[name]))
		}
	}
	for _, found := range regexp.MustCompile(`epoch (\d+): .* gradient=(\S+)`).FindAllStringSubmatch(string(out), -1) {
		all = append(all, fmt.Sprintf("%s gradient=%s", found[1], found[2]))
	}
	slices.Sort(all)
	return all
}
