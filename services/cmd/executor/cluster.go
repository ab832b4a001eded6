package main

import (
	"context"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/cluster/local"
)

// pods is the cluster that runs the objects of runs.
type pods struct {
	cluster.Creator
	cluster.Deleter
	cluster.Observer

	ready func(context.Context) error
	close func(context.Context) error
}

// open opens the cluster that the settings name: the local one, whose pods go on
// when it is closed, or else Kubernetes.
func (s *settings) open(log *zap.Logger) (pods, error) {
	if s.Cluster.Dir != "" {
		s.Executor.Engine = executor.EngineLocal
		c, err := local.New(local.Settings{Dir: s.Cluster.Dir, PodBinary: s.Cluster.PodBinary, Secrets: s.Cluster.Secrets, Log: log})
		if err != nil {
			return pods{}, err
		}
		always := func(context.Context) error { return nil }
		return pods{c, c, c, always, func(ctx context.Context) error { return c.Close(ctx, true) }}, nil
	}
	s.Executor.Engine, s.Executor.Pods.Scope = executor.EngineKubernetes, s.Kubernetes.Scope()
	c, err := kube.New(s.Kubernetes, log)
	if err != nil {
		return pods{}, err
	}
	return pods{c, c, c, c.Ready, func(context.Context) error { c.Close(); return nil }}, nil
}
