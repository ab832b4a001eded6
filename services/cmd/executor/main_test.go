package main

import (
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/cmd/internal/deployedtest"
	"github.com/benchmark-ai/bai/services/internal/config"
	"github.com/benchmark-ai/bai/services/internal/mpijob"
	"github.com/benchmark-ai/bai/services/plan"
)

func TestPodsRunInKubernetesWhereNoLocalClusterIsNamed(t *testing.T) {
	var s settings
	s.Kubernetes.Namespace = "benchmarks"
	if e := s.executor(); e.Engine != plan.EngineKubernetes || e.Pods.Scope != "benchmarks" {
		t.Errorf("engine %q, namespace %q", e.Engine, e.Pods.Scope)
	}
	s.Cluster.Dir = "pods"
	if e := s.executor(); e.Engine != plan.EngineLocal || e.Pods.Scope != "" {
		t.Errorf("engine %q, namespace %q", e.Engine, e.Pods.Scope)
	}
}

func TestAnOperatorThatNobodyWatchesIsRefused(t *testing.T) {
	var s settings
	s.Executor.Pods.MPIOperator = true
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "kubernetes.kinds does not name") {
		t.Errorf("Validate: %v", err)
	}
	s.Kubernetes.Kinds = []string{mpijob.Resource}
	if err := s.Validate(); err != nil && strings.Contains(err.Error(), "kubernetes.kinds") {
		t.Errorf("Validate: %v", err)
	}
}

func TestTheSettingsThatAreDeployedAreOnesThatThisProgramHas(t *testing.T) {
	deployedtest.WantLoaded(t, func() config.Validator { return &settings{} })
}
