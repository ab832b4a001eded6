package e2e_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

// TestWhatIsRecordedOfTheSampleIsWhatTheMachineSays runs the compression sample, and
// compares its environment with this machine's own tools, and its summaries with
// Python's.
func TestWhatIsRecordedOfTheSampleIsWhatTheMachineSays(t *testing.T) {
	t.Parallel()
	for tool, from := range map[string]string{"lscpu": "util-linux", "nproc": "coreutils", "uname": "coreutils", "python3": "python3", "awk": "mawk", "sha256sum": "coreutils"} {
		tooltest.Program(t, tool, from)
	}
	p := start(t)
	data := httptest.NewServer(http.FileServer(http.Dir("../../../sample-benchmarks/compression")))
	defer data.Close()
	file := writeTemp(t, compression(t, data.URL))
	run := p.submit(read(t, file))
	if r := p.awaitComplete(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Fatalf("ended as %v\n%s", r, strings.Join(p.lines(run), "\n"))
	}
	p.wantEnvironment(run, file)
	p.wantSummaries(run)
}

// wantEnvironment compares the environment of a run with the output of tools.
func (p *platform) wantEnvironment(run, file string) {
	t := p.t
	t.Helper()
	results := baiv1.NewResultServiceClient(p.conn)
	var e *baiv1.Environment
	eventually(t, func() error {
		r, err := results.GetEnvironment(t.Context(), &baiv1.GetEnvironmentRequest{Run: run})
		if e = r.GetEnvironment(); err == nil && (len(e.GetPods()) != 1 || len(e.GetPods()[0].GetTools()) == 0) {
			err = fmt.Errorf("it is %v, want one pod that has asked its tools", e)
		}
		return err
	})
	if t.Failed() {
		return
	}
	m := e.GetPods()[0].GetMachine()
	cores := number(t, "lscpu -p=CORE,SOCKET | grep -v '^#' | sort -u | wc -l")
	for what, values := range map[string][2]any{
		"kernel":            {m.GetKernel(), commandOutput(t, "uname -r")},
		"architecture":      {m.GetArchitecture(), map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[commandOutput(t, "uname -m")]},
		"node":              {m.GetNode(), commandOutput(t, "uname -n")},
		"system":            {m.GetOs(), commandOutput(t, ". /etc/os-release; echo $PRETTY_NAME")},
		"processors":        {int(m.GetCpus()), number(t, "getconf _NPROCESSORS_ONLN")},
		"allowed":           {int(m.GetCpusAllowed()), number(t, "nproc")},
		"sockets":           {int(m.GetSockets()), number(t, "lscpu -p=SOCKET | grep -v '^#' | sort -u | wc -l")},
		"cores":             {int(m.GetCores()), cores},
		"NUMA nodes":        {int(m.GetNumaNodes()), number(t, "ls -d /sys/devices/system/node/node[0-9]* | wc -l")},
		"model":             {m.GetCpuModel(), commandOutput(t, "LC_ALL=C lscpu | sed -n 's/^Model name: *//p'")},
		"virtual":           {m.GetHypervisor() != "", commandOutput(t, "LC_ALL=C lscpu | grep -c '^Hypervisor vendor' || true") != "0"},
		"memory":            {m.GetMemory(), int64(number(t, "awk '/^MemTotal/ {print $2}' /proc/meminfo")) << 10},
		"governor":          {m.GetGovernor(), commandOutput(t, "cat /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor 2>/dev/null | sort -u | paste -sd, | sed 's/,/, /g'")},
		"python":            {e.GetPods()[0].GetTools()["python3"], commandOutput(t, "python3 --version")},
		"descriptor digest": {e.GetDescriptorSha256(), commandOutput(t, "sha256sum < "+file+" | cut -d' ' -f1")},
		"data digest":       {e.GetData()[0].GetSha256(), commandOutput(t, "sha256sum < ../../../sample-benchmarks/compression/access.log | cut -d' ' -f1")},
		"data size":         {e.GetData()[0].GetSize(), int64(number(t, "wc -c < ../../../sample-benchmarks/compression/access.log"))},
	} {
		if values[0] != values[1] {
			t.Errorf("%s: recorded is %v, the machine says %v", what, values[0], values[1])
		}
		t.Logf("%-18s %v", what, values[0])
	}
	if len(e.GetFingerprint()) < 8 || e.GetPods()[0].GetPlatformVersion() == "" {
		t.Errorf("fingerprint %q, platform %q", e.GetFingerprint(), e.GetPods()[0].GetPlatformVersion())
	}
}

// commandOutput returns a command's output, without the last line end.
func commandOutput(t *testing.T, command string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", command).Output()
	if err != nil {
		t.Errorf("%s: %v", command, err)
	}
	return strings.TrimSpace(string(out))
}

func number(t *testing.T, command string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(commandOutput(t, command), &n); err != nil {
		t.Errorf("%s: %v", command, err)
	}
	return n
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// metricSummary is the summary of a metric.
type metricSummary struct {
	Metric           string
	N                int64
	Min, Max, Median float64
	P90, P95, P99    float64
	Mean             float64
	SD               *float64
	First, Last      float64
	Interval         *struct{ Low, High, Level float64 }
}

// wantSummaries compares the summaries of a run with Python's, made of the samples that
// baictl prints.
func (p *platform) wantSummaries(run string) {
	t := p.t
	t.Helper()
	results := baiv1.NewResultServiceClient(p.conn)
	got := map[string]*baiv1.MetricSummary{}
	eventually(t, func() error {
		r, err := results.GetSummaries(t.Context(), &baiv1.GetSummariesRequest{Run: run})
		for _, s := range r.GetSummaries() {
			got[s.GetMetric()] = s
		}
		if err == nil && !r.GetComplete() {
			err = fmt.Errorf("not complete: %v", r)
		}
		return err
	})
	samples, errs, code := p.baictl("metrics", run, "-o", "json")
	if code != 0 {
		t.Fatalf("baictl metrics: exit %d, %s", code, errs)
	}
	python := exec.CommandContext(t.Context(), "python3", "testdata/summaries.py")
	python.Stdin, python.Stderr = strings.NewReader(samples), os.Stderr
	out, err := python.Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		var want metricSummary
		if err := json.Unmarshal([]byte(line), &want); err != nil {
			t.Fatal(err)
		}
		seen++
		p.wantSummary(want, got[want.Metric])
	}
	if seen < 10 || seen != len(got) {
		t.Errorf("%d metrics are summed up, Python finds %d", len(got), seen)
	}
}

func (p *platform) wantSummary(want metricSummary, s *baiv1.MetricSummary) {
	p.t.Helper()
	if s == nil || s.GetN() != want.N {
		p.t.Errorf("%s: %v, want %d samples", want.Metric, s, want.N)
		return
	}
	numbers := map[string][2]float64{
		"min": {s.GetMin(), want.Min}, "max": {s.GetMax(), want.Max}, "median": {s.GetMedian(), want.Median},
		"p90": {s.GetP90(), want.P90}, "p95": {s.GetP95(), want.P95}, "p99": {s.GetP99(), want.P99}, "mean": {s.GetMean(), want.Mean},
		"sd": {s.GetSd(), *cmp.Or(want.SD, new(math.NaN()))}, "first": {s.GetFirst(), want.First}, "last": {s.GetLast(), want.Last},
	}
	if i := want.Interval; i != nil {
		numbers["low"], numbers["high"], numbers["level"] = [2]float64{s.GetInterval().GetLow(), i.Low}, [2]float64{s.GetInterval().GetHigh(), i.High}, [2]float64{s.GetInterval().GetLevel(), i.Level}
	} else if s.GetInterval() != nil {
		p.t.Errorf("%s: %d samples have the interval %v", want.Metric, want.N, s.GetInterval())
	}
	for name, of := range numbers {
		if math.Abs(of[0]-of[1]) > 1e-9*math.Max(1, math.Abs(of[1])) || math.IsNaN(of[0]) != math.IsNaN(of[1]) {
			p.t.Errorf("%s: %s is %v, Python says %v\n%s", want.Metric, name, of[0], of[1], gocmp.Diff(fmt.Sprint(want), s.String()))
		}
	}
}
