package main

import (
	"testing"

	"github.com/benchmark-ai/bai/services/executor"
)

func TestPodsRunInKubernetesWhereNoLocalClusterIsNamed(t *testing.T) {
	var s settings
	s.Kubernetes.Namespace = "benchmarks"
	if e := s.executor(); e.Engine != executor.EngineKubernetes || e.Pods.Scope != "benchmarks" {
		t.Errorf("engine %q, namespace %q", e.Engine, e.Pods.Scope)
	}
	s.Cluster.Dir = "pods"
	if e := s.executor(); e.Engine != executor.EngineLocal || e.Pods.Scope != "" {
		t.Errorf("engine %q, namespace %q", e.Engine, e.Pods.Scope)
	}
}
