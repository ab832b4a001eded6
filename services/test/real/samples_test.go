package real_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// measured is one value that a run measured.
type measured struct {
	Metric string
	Unit   string
	Value  float64
	Labels map[string]string
}

// sample runs a sample with some overrides, and returns its metrics and its log.
func (w fixture) sample(t *testing.T, name string, set ...string) (values map[string][]float64, log string) {
	t.Helper()
	args := []string{"run", "../../../sample-benchmarks/" + name + "/descriptor.toml", "--name", name}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	out, code := w.baictl(t, args...)
	log, _ = w.baictl(t, "logs", name)
	if code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, out, log)
	}
	text, _ := w.baictl(t, "metrics", name, "-o", "json")
	values = map[string][]float64{}
	for line := range strings.Lines(text) {
		var m measured
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		values[m.Metric] = append(values[m.Metric], m.Value)
	}
	t.Logf("%s\n%s\n%s", name, log, out)
	return values, log
}

// median is the median.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}

// wantMedianBetween fails the test where the median of a metric's values is none that can
// be, or there are not as many as there should be.
func wantMedianBetween(t *testing.T, values map[string][]float64, metric string, count int, least, most float64) {
	t.Helper()
	if n := len(values[metric]); n != count {
		t.Errorf("%s: %d values, want %d", metric, n, count)
	}
	if m := median(values[metric]); m < least || m > most {
		t.Errorf("%s: median %g, want %g to %g", metric, m, least, most)
	}
}

// TestSamplesMeasureWhatCanBe runs the samples as they are shipped, but for the
// image, because these machines pull none.
func TestSamplesMeasureWhatCanBe(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "[executor.pods]\ngrace = \"4s\"\n", "--slots", "1")
	importBenchImage(t, w)
	w.cluster.Run(t, "patch", "node", "node1", "--subresource=status", "--type=json",
		"-p", `[{"op":"add","path":"/status/capacity/nvidia.com~1gpu","value":"8"}]`)
	t.Run("mpi-pingpong", w.pingPong)
	t.Run("inference", w.answers)
	t.Run("gpu", w.seesGPUs)
	awaitCleared(t, w.cluster, w.scope)
	wantNothingForbidden(t, calls(t, w.cluster, w.scope, "platform"))
}

func (w fixture) pingPong(t *testing.T) {
	const repetitions = 5
	values, log := w.sample(t, "mpi-pingpong", "hardware.memory=128Mi", `env.vars.SECONDS_EACH="0.05"`)
	before := 0.0
	for _, size := range []float64{8, 64, 512, 4096, 32768, 262144, 1048576, 4194304} {
		latency, bandwidth := fmt.Sprintf("latency_%.0f", size), fmt.Sprintf("bandwidth_%.0f", size)
		wantMedianBetween(t, values, latency, repetitions, 1, 5e6)
		wantMedianBetween(t, values, bandwidth, repetitions, size/5e6, 1e6)
		for i := range values[latency] {
			if moved := values[latency][i] * values[bandwidth][i]; moved < size*0.95 || moved > size*1.05 {
				t.Errorf("%g us at %g MB/s are %g bytes, want %g", values[latency][i], values[bandwidth][i], moved, size)
			}
		}
		if size == 4194304 && median(values[latency]) < 2*before {
			t.Errorf("the largest message takes %g us, and the smallest %g", median(values[latency]), before)
		}
		if size == 8 {
			before = median(values[latency])
		}
	}
	if a, b, ok := ranks(log); !ok || a == b {
		t.Errorf("the ranks ran on %q and %q, want two pods", a, b)
	}
}

// ranks returns where the two ranks ran.
func ranks(log string) (a, b string, ok bool) {
	_, rest, ok := strings.Cut(log, "ranks on ")
	line, _, _ := strings.Cut(rest, "\n")
	a, b, and := strings.Cut(line, " and ")
	return a, b, ok && and
}

func (w fixture) answers(t *testing.T) {
	const questions, clients = 50, 4
	image := []string{"env.docker_image=local/bench:1", "server.env.docker_image=local/bench:1"}
	values, log := w.sample(t, "inference", append(image, fmt.Sprintf(`env.vars.QUESTIONS="%d"`, questions))...)
	wantMedianBetween(t, values, "latency", questions, 0.05, 5000)
	wantMedianBetween(t, values, "latency_p50", 1, 0.05, 5000)
	wantMedianBetween(t, values, "latency_p99", 1, median(values["latency_p50"]), 30_000)
	wantMedianBetween(t, values, "compute", (2+clients)*questions, 0.05, median(values["latency_p99"]))
	wantMedianBetween(t, values, "throughput", 1, 0.1, 1000/slices.Min(values["compute"]))
	if !strings.Contains(log, "wrong answers: 0") {
		t.Error("the answers were not checked")
	}
}

func (w fixture) seesGPUs(t *testing.T) {
	began := time.Now()
	values, log := w.sample(t, "gpu", "env.docker_image=local/bench:1", "hardware.gpus=2")
	wantMedianBetween(t, values, "cuda_gpus", 1, 0, 0) // they only pretend
	for _, words := range []string{"NVIDIA_VISIBLE_DEVICES=", "device files: none", "nvidia-smi: not there", "no CUDA: ", "GPUs that CUDA reaches: 0"} {
		if !strings.Contains(log, words) {
			t.Errorf("it does not say %q", words)
		}
	}
	out, code := w.baictl(t, "run", "../../../sample-benchmarks/gpu/descriptor.toml", "--set", "env.docker_image=local/bench:1", "--set", "env.vars.CUDA_REQUIRED=yes")
	if code != 1 || !strings.Contains(out, "a GPU was asked for, and CUDA reaches none") {
		t.Errorf("without CUDA where it is required: exit code %d\n%s", code, out)
	}
	t.Logf("both in %s", time.Since(began).Round(time.Second))
}
