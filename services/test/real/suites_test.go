package real_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

// TestThePlansOfTheSuitesAreWhatTheAPIServerAccepts applies the golden objects of each suite in
// each network as a server-side dry run: all that need no right at the level of the base, and
// those that need one at the level of the component networks. Their pods are refused at the
// level of the base.
func TestThePlansOfTheSuitesAreWhatTheAPIServerAccepts(t *testing.T) {
	t.Parallel()
	testCluster := testbed.API(t)
	scopes := map[string]string{"baseline": testCluster.Namespace(t), "privileged": testCluster.Namespace(t)}
	testCluster.Run(t, "label", "namespace", scopes["privileged"], "pod-security.kubernetes.io/enforce=privileged", "--overwrite")
	plans, pods := map[string][][]byte{}, [][]byte{}
	for _, file := range plansOf(t, "suites/*.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		needed := level(file, text)
		plans[needed] = append(plans[needed], bytes.ReplaceAll(text, []byte("\n  namespace: benchmarks\n"), []byte("\n  namespace: "+scopes[needed]+"\n")))
		for _, pod := range podsOf(t, text) {
			if level(file, pod) == "privileged" {
				pods = append(pods, pod)
			}
		}
	}
	if len(plans["baseline"]) != 14 || len(plans["privileged"]) != 21 {
		t.Errorf("%d plans need no right, and %d need one", len(plans["baseline"]), len(plans["privileged"]))
	}
	for _, all := range plans {
		wantAccepted(t, testCluster, bytes.Join(all, []byte("\n---\n")))
	}
	if len(pods) == 0 {
		t.Error("no pod needs a right")
	}
	for _, pod := range pods {
		if _, err := testCluster.DryRun(t.Context(), scopes["baseline"], pod); !isBelowPodSecurity(err) {
			t.Errorf("a pod that needs a right is not refused for it: %v\n%s", err, pod)
		}
	}
}

// TestTheSuitesRunInTheirImagesOnTwoNodes runs iperf between two nodes, and fio on two workers,
// in the images that are made of Debian packages. They share the nodes with other tests.
func TestTheSuitesRunInTheirImagesOnTwoNodes(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "--slots", "2")
	tar, err := kit.SuiteImages(t.Context(), "fio", "iperf")
	if err != nil {
		t.Fatal(err)
	}
	importImage(t, w.cluster, tar)
	for suite, tt := range map[string]struct {
		pattern string // of the number that the tool prints last
		unit    float64
		metric  string
		set     []string
	}{
		"iperf": {`\[SUM\].* (\d+) Kbits/sec`, 1000, "bandwidth", []string{"sweep.product.duration=[1]", "sweep.product.streams=[2]"}},
		"fio": {`"iops" : ([0-9.]+)`, 1, "iops", []string{
			"roles.0.replicas=2", `sweep.product.size=["1M"]`, `sweep.product.bs=["4k"]`, `sweep.product.runtime=["1s"]`, "sweep.product.direct=[0]", `sweep.product.directory=["/tmp/scratch"]`,
			`sweep.product.ioengine=["psync"]`,
		}},
	} {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			set := append(tt.set, "hardware.placement=", "hardware.cpus=20m", fmt.Sprintf("sweep.product.image_prefix=[%q]", kit.SuitePrefix), fmt.Sprintf("sweep.product.image_tag=[%q]", kit.SuiteTag))
			values, log := w.suite(t, suite, set...)
			var printed []float64
			for _, m := range regexp.MustCompile(tt.pattern).FindAllStringSubmatch(log, -1) {
				number, err := strconv.ParseFloat(m[1], 64)
				if err != nil {
					t.Fatal(err)
				}
				printed = append(printed, number*tt.unit)
			}
			if !slices.ContainsFunc(values[tt.metric], func(v float64) bool {
				return v > 0 && slices.Contains(printed, v) && v == slices.Max(values[tt.metric])
			}) {
				t.Errorf("the platform has the values %v, and the tool prints %v:\n%s", values[tt.metric], printed, log)
			}
		})
	}
}

// suite runs a suite of one cell with some overrides, and returns its metrics and its log.
func (w fixture) suite(t *testing.T, name string, set ...string) (values map[string][]float64, log string) {
	t.Helper()
	args := []string{"run", "../../../sample-benchmarks/suite/" + name + "/descriptor.toml", "--name", name}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	out, code := w.baictl(t, args...)
	text, _ := w.baictl(t, "set", "get", name, "-o", "json")
	var shown struct {
		Cells []struct{ Runs []struct{ RunID string } }
	}
	if err := json.Unmarshal([]byte(text), &shown); err != nil || len(shown.Cells) != 1 || len(shown.Cells[0].Runs) != 1 {
		t.Fatalf("%v, exit code %d\n%s\n%s", err, code, out, text)
	}
	run := shown.Cells[0].Runs[0].RunID
	if result, _ := w.baictl(t, "watch", run); code != 0 {
		log, _ = w.baictl(t, "logs", run)
		t.Fatalf("exit code %d\n%s\n%s", code, result, log)
	}
	log, _ = w.baictl(t, "logs", run)
	text, _ = w.baictl(t, "metrics", run, "-o", "json")
	values = map[string][]float64{}
	for line := range strings.Lines(text) {
		var m measured
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		values[m.Metric] = append(values[m.Metric], m.Value)
	}
	return values, log
}
