package main_test

import (
	"path/filepath"
	"testing"

	"github.com/benchmark-ai/bai/client-lib/internal/golden"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// TestReproSaysThatAMachinesOwnProgramsRan: of a run of bai standalone no image was
// pulled, whatever its descriptor names.
func TestReproSaysThatAMachinesOwnProgramsRan(t *testing.T) {
	t.Parallel()
	p := newFixture(t, newYear)
	p.SetEnvironment(helloID, &baiv1.Environment{Image: "docker.io/library/hello-world:1", Pods: []*baiv1.PodEnvironment{{
		Role: "benchmark", Pod: "p1", Attempt: 1, ImageDigest: "none", Tools: map[string]string{"python3": "Python 3.11.2", "numpy": "1.26.4"},
		Machine: &baiv1.Machine{Node: "laptop", Kernel: "6.8.0-45-generic", Architecture: "amd64", Os: "Debian GNU/Linux 12 (bookworm)"},
	}}})
	golden.Check(t, filepath.Join("testdata", "pipe", "repro-local.txt"), normalizeOutput(runPiped(t, p.Addr(), "repro", helloID).String(), p))
}
