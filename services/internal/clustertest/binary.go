package clustertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// BuildPod builds the pod binary into dir, as it is shipped, and returns its
// place.
func BuildPod(dir string) (string, error) {
	path := filepath.Join(dir, "bai-pod")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "github.com/benchmark-ai/bai/services/cmd/bai-pod") //nolint:gosec,noctx // a test's
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the pod binary: %w\n%s", err, out)
	}
	return path, nil
}
