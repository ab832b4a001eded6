package convert_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert"
	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

// asOneCell returns what a text says of its first cell, but for what a suite and a converted
// file may say otherwise: names, images, and blanks in commands.
func asOneCell(t *testing.T, text []byte, values ...parser.Override) *descriptors.Descriptor {
	t.Helper()
	d, _, faults := parser.ParseWith("f.toml", text, values)
	if d == nil || slices.ContainsFunc(faults, func(f parser.Fault) bool { return !f.Warning }) {
		t.Fatalf("%v\n%s", faults, text)
	}
	d.Info, d.Sweep, d.Env.DockerImage = descriptors.Info{}, nil, ""
	if d.ML != nil {
		d.ML.BenchmarkCode = strings.Join(strings.Fields(d.ML.BenchmarkCode), " ")
	}
	for i := range d.Roles {
		d.Roles[i].BenchmarkCode = strings.Join(strings.Fields(d.Roles[i].BenchmarkCode), " ")
	}
	return d
}

// parameter returns the value of a parameter of a suite.
func parameter(name, value string) parser.Override {
	return parser.Override{Path: "sweep.product." + name, Value: "[" + value + "]"}
}

func TestAConvertedBenchmarkIsTheSuiteWithParameters(t *testing.T) {
	t.Parallel()
	for kind, tt := range map[string]struct {
		suite, spec string
		values      []parser.Override
	}{
		"IPerf": {"iperf", "{duration: 10, streams: 4, hostNetwork: true}", []parser.Override{
			parameter("duration", "10"), parameter("streams", "4"), {Path: "network.host_network", Value: "true"},
		}},
		"Fio": {"fio", "{fioPort: 8800, numWorkers: 3, rw: randrw, bs: 32k, iodepth: 8, nrfiles: 2, rwmixread: 30, percentageRandom: 90, numJobs: 4, direct: 0, runtime: 10s, size: 1G, thread: true}", []parser.Override{
			{Path: "roles.0.ready.port", Value: "8800"},
			{Path: "roles.0.replicas", Value: "3"},
			parameter("rw", `"randrw"`), parameter("bs", `"32k"`), parameter("iodepth", "8"), parameter("nrfiles", "2"), parameter("rwmixread", "30"),
			parameter("percentage_random", "90"), parameter("num_jobs", "4"), parameter("direct", "0"), parameter("runtime", `"10s"`), parameter("size", `"1G"`),
			parameter("thread", `"thread"`),
		}},
		"RDMABandwidth": {"rdma-bandwidth", "{mode: write, iterations: 500, qps: 8, extraArgs: [--tclass=96], mtu: 9000}", []parser.Override{
			parameter("mode", `"write"`), parameter("iterations", "500"), parameter("qps", "8"), parameter("extra_args", `"--tclass=96"`), {Path: "network.mtu", Value: "9000"},
		}},
		"RDMALatency": {"rdma-latency", "{mode: write, iterations: 500, networkName: default/fast}", []parser.Override{
			parameter("mode", `"write"`), parameter("iterations", "500"), {Path: "network.attachment", Value: `"default/fast"`},
		}},
		"PyTorch": {"pytorch", "{model: resnet50, benchmarkType: train, inputBatchSize: 32}", []parser.Override{
			parameter("model", `"resnet50"`), parameter("benchmark_type", `"train"`), parameter("input_batch_size", "32"),
		}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := convert.Convert("kube-perftest", []byte("apiVersion: perftest.stackhpc.com/v1alpha1\nkind: "+kind+"\nmetadata: {name: one}\nspec: "+tt.spec+"\n"))
			if len(r.Faults) > 0 || len(r.Files) != 1 {
				t.Fatal(r.Faults)
			}
			suite, err := os.ReadFile("../../../../../sample-benchmarks/suite/" + tt.suite + "/descriptor.toml")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(asOneCell(t, suite, tt.values...), asOneCell(t, []byte(r.Files[0].Text))); diff != "" {
				t.Errorf("(-suite +converted):\n%s", diff)
			}
		})
	}
}
