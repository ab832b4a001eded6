package pods_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/cmd/internal/pods"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/cluster/local"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`

func TestAClusterThatCannotBeReachedIsNotReady(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := pods.Open(kube.Settings{Kubeconfig: path, Namespace: "benchmarks"}, local.Settings{}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if c.Ready(t.Context()) == nil {
		t.Error("it says that it reaches what is not there")
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheLocalClusterIsTakenWhereItsDirectoryIsNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pods")
	_, err := pods.Open(kube.Settings{}, local.Settings{Dir: dir, PodBinary: "/nowhere/bai-pod"}, zap.NewNop())
	if err == nil {
		t.Fatal("it was opened without the program of its pods")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the directory was not looked at: %v", err)
	}
}
