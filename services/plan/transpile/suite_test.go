package transpile_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/sweep"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/golden"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// suites are the suites whose objects are compared in each network.
func suites() []string {
	return []string{"fio", "iperf", "mpi-pingpong", "openfoam", "pytorch", "rdma-bandwidth", "rdma-latency"}
}

// inNetwork returns the keys that put a suite into a network of networks.
func inNetwork(suite, network string) []parser.Override {
	var set []parser.Override
	for line := range strings.Lines(networks[network]) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " = ")
		set = append(set, parser.Override{Path: "network." + key, Value: value})
	}
	if network == "rdma" && slices.Contains([]string{"mpi-pingpong", "openfoam"}, suite) {
		set = append(set, parser.Override{Path: "network.transport", Value: `"rdma"`})
	}
	return set
}

// suiteInput returns the input of the only cell of a suite in a network.
func suiteInput(t *testing.T, suite, network string) transpile.Input {
	t.Helper()
	text, err := os.ReadFile("../../../sample-benchmarks/suite/" + suite + "/descriptor.toml")
	if err != nil {
		t.Fatal(err)
	}
	_, text, faults := parser.ParseWith(suite, text, inNetwork(suite, network))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	p, faults := sweep.Read(parser.Parser{}, suite, text)
	if len(faults) > 0 || p.Cells() != 1 {
		t.Fatalf("%v, %d cells", faults, p.Cells())
	}
	h := event.NewHeader("m1", runID, "pets", "ann@example.org", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return newInput(t, event.Fetched{Header: h, File: suite + ".toml", Descriptor: string(p.Descriptor(0))})
}

// TestObjectsOfSuites compares the Jobs, Services and policies of each suite in each network
// with a golden file.
func TestObjectsOfSuites(t *testing.T) {
	t.Parallel()
	for _, suite := range suites() {
		for network := range networks {
			t.Run(suite+"."+network, func(t *testing.T) {
				t.Parallel()
				p := objects(t, suiteInput(t, suite, network), settings)
				kept := slices.DeleteFunc(p.Objects, func(o cluster.Object) bool {
					kind := o.GetObjectKind().GroupVersionKind().Kind
					return kind == "ConfigMap" || kind == "Secret"
				})
				text := manifest(t, kept)
				checkStrict(t, text)
				golden.Check(t, filepath.Join("testdata", "suites", suite+"."+network+".yaml"), text)
			})
		}
	}
}
