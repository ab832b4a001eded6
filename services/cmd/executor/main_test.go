package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/executor"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`

func TestPodsRunInKubernetesWhereNoLocalClusterIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	var s settings
	s.Kubernetes.Kubeconfig, s.Kubernetes.Namespace = path, "benchmarks"
	p, err := s.open(zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if s.Executor.Engine != executor.EngineKubernetes || s.Executor.Pods.Scope != "benchmarks" {
		t.Errorf("engine %q, namespace %q", s.Executor.Engine, s.Executor.Pods.Scope)
	}
	if p.ready(t.Context()) == nil {
		t.Error("it says that it reaches what is not there")
	}
	if err := p.close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestALocalClusterNeedsItsProgram(t *testing.T) {
	var s settings
	s.Store, s.Cluster.Dir = "store.db", "pods"
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "cluster: dir and pod_binary go together") {
		t.Errorf("%v", err)
	}
}
