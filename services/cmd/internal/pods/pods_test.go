package pods_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/cmd/internal/pods"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
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
	clusters := pods.Clusters{Kubernetes: kube.Settings{Kubeconfig: path, Namespace: "benchmarks"}}
	c, err := clusters.Open(zap.NewNop())
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
	clusters := pods.Clusters{Cluster: pods.Local{Dir: dir, PodBinary: "/nowhere/bai-pod"}}
	_, err := clusters.Open(zap.NewNop())
	if err == nil {
		t.Fatal("it was opened without the program of its pods")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the directory was not looked at: %v", err)
	}
}

func TestALocalClusterNeedsItsProgram(t *testing.T) {
	clusters := pods.Clusters{Cluster: pods.Local{Dir: "pods"}}
	if err := clusters.Validate(); err == nil || !strings.Contains(err.Error(), "cluster: dir and pod_binary go together") {
		t.Errorf("%v", err)
	}
}
