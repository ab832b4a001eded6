package clustertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// BuildPod builds the pod binary into dir, with the one that ships beside it, as in a release, and returns its path.
func BuildPod(dir string) (string, error) {
	const commands = "github.com/benchmark-ai/bai/services/cmd/"
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", dir+"/", commands+"bai-pod", commands+"bai-pod-ship") //nolint:gosec,noctx // a test's
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the pod binary: %w\n%s", err, out)
	}
	return filepath.Join(dir, "bai-pod"), nil
}
