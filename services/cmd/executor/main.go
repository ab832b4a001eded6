// Command executor launches each run once, when there is a slot for it.
package main

import (
	"context"
	"errors"

	"github.com/benchmark-ai/bai/services/cmd/internal/pods"
	"github.com/benchmark-ai/bai/services/cmd/internal/program"
	"github.com/benchmark-ai/bai/services/cmd/internal/wiring"
	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/executor/launch"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/registry"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/plan"
)

func main() { program.Main("executor", &settings{}) }

type settings struct {
	program.Settings
	pods.Clusters

	Executor executor.Settings
	Registry registry.Settings // registries that are asked about images' own entrypoints

	Engines map[string]wiring.Engine // clusters beside the default one, by the name that descriptors give in info.execution_engine
}

// Validate implements config.Validator.
func (s *settings) Validate() error {
	return errors.Join(s.Settings.Validate(), s.Clusters.Validate(), s.Executor.Validate(), s.Registry.Validate(), s.Kafka.CheckPods(),
		s.Kubernetes.ValidateOperator(s.Executor.Pods.MPIOperator), kube.ValidateManifests(s.Kubernetes, s.Executor.Pods.Manifests),
		wiring.ValidateEngines(s.Engines, s.Executor.Pods), wiring.RefuseLocalEngines(s.Engines))
}

// executor returns the executor's settings for the configured cluster.
func (s *settings) executor() executor.Settings {
	e := s.Executor
	if s.Cluster.Dir != "" {
		e.Engine = plan.EngineLocal
		return e
	}
	e.Engine, e.Pods.Scope = plan.EngineKubernetes, s.Kubernetes.Scope()
	return e
}

// Parts implements program.Service.
func (s *settings) Parts(ctx context.Context, c *program.Common) (map[string]service.Runnable, error) {
	settings := s.executor()
	var err error
	if settings.Pods.Access, err = s.Kafka.ForPods(); err != nil {
		return nil, err
	}
	s.Kubernetes.MainOnly = true  // the executor does not need the other fields, and each observation would read them
	cluster, err := s.Open(c.Log) //nolint:contextcheck // it outlives the start
	if err != nil {
		return nil, err
	}
	c.OnClose(func() error { return cluster.Close(context.WithoutCancel(ctx)) })
	c.Checks["cluster"] = cluster.Ready
	deps := executor.Deps{
		Bus: c.Bus, Store: c.Store, Cluster: cluster, Images: make(map[string]plan.Images),
		Token: c.Bus.Token, Log: c.Log,
	}
	if cluster.Secrets != nil {
		images, err := registry.New(s.Registry, cluster.Secrets)
		if err != nil {
			return nil, err
		}
		c.OnClose(func() error { images.Close(); return nil })
		deps.Images[""] = images
	}
	settings.Engines = wiring.EngineSettings(s.Engines, settings.Pods)
	if err := s.openEngines(c, &deps); err != nil {
		return nil, err
	}
	return executor.New(settings, deps), nil
}

// openEngines opens the clusters beside the default one.
func (s *settings) openEngines(c *program.Common, deps *executor.Deps) error {
	engines, err := wiring.OpenEngines(s.Engines, true, c.Log)
	if err != nil {
		return err
	}
	programs, err := wiring.OpenPrograms(s.Engines, c.Log)
	if err != nil {
		return err
	}
	deps.Engines = make(map[string]launch.Cluster, len(s.Engines))
	for name, k := range engines {
		c.OnClose(func() error { k.Close(); return nil })
		deps.Engines[name] = k
	}
	for name, e := range programs {
		c.OnClose(func() error { e.Close(); return nil })
		deps.Engines[name] = e
	}
	release, err := wiring.AddImages(deps.Images, s.Registry, engines)
	if err != nil {
		return err
	}
	c.OnClose(func() error { release(); return nil })
	return nil
}
