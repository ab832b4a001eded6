// Command watcher reports the progress of each launched run, and its outcome.
package main

import (
	"context"
	"errors"
	"maps"

	"github.com/benchmark-ai/bai/services/cmd/internal/pods"
	"github.com/benchmark-ai/bai/services/cmd/internal/program"
	"github.com/benchmark-ai/bai/services/cmd/internal/wiring"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/metrics-pusher/follow"
	"github.com/benchmark-ai/bai/services/plan/transpile"
	"github.com/benchmark-ai/bai/services/watcher"
)

func main() { program.Main("watcher", &settings{}) }

type settings struct {
	program.Settings
	pods.Clusters

	Watcher watcher.Settings
	Follow  follow.Settings // followers of the logs of images' own entrypoints

	Engines map[string]wiring.Engine // clusters beside the default one, by the name that descriptors give in info.execution_engine
}

// Validate implements config.Validator.
func (s *settings) Validate() error {
	return errors.Join(s.Settings.Validate(), s.Clusters.Validate(), s.Watcher.Validate(), s.Follow.Validate(),
		wiring.ValidateEngines(s.Engines, transpile.Settings{}), wiring.RefuseLocalEngines(s.Engines))
}

// Parts implements program.Service.
func (s *settings) Parts(ctx context.Context, c *program.Common) (map[string]service.Runnable, error) {
	cluster, err := s.Open(c.Log) //nolint:contextcheck // it outlives the start
	if err != nil {
		return nil, err
	}
	c.OnClose(func() error { return cluster.Close(context.WithoutCancel(ctx)) })
	c.Checks["cluster"] = cluster.Ready
	engines, err := wiring.OpenEngines(s.Engines, false, c.Log)
	if err != nil {
		return nil, err
	}
	programs, err := wiring.OpenPrograms(s.Engines, c.Log)
	if err != nil {
		return nil, err
	}
	deps := watcher.Deps{
		Bus: c.Bus, Store: c.Store, Cluster: cluster, Ready: cluster.Ready, Annotator: cluster.Annotator,
		Engines: make(map[string]watcher.Engine, len(s.Engines)), Log: c.Log,
	}
	followed := make(map[string]follow.Cluster, len(s.Engines))
	for name, k := range engines {
		c.OnClose(func() error { k.Close(); return nil })
		deps.Engines[name], followed[name] = watcher.Engine{Cluster: k, Ready: k.Ready, Annotator: k}, k
	}
	for name, e := range programs {
		c.OnClose(func() error { e.Close(); return nil })
		deps.Engines[name], followed[name] = watcher.Engine{Cluster: e, Ready: e.Ready}, e
	}
	parts := watcher.New(s.Watcher, deps)
	if cluster.Logs != nil {
		maps.Copy(parts, follow.New(s.Follow, follow.Deps{
			Bus: c.Bus, Store: c.Store, Cluster: wiring.NewLogs(cluster, cluster.Logs), Holder: wiring.ProcessName(), Log: c.Log,
		}))
	}
	for name, logs := range followed {
		maps.Copy(parts, follow.New(s.Follow, follow.Deps{
			Bus: c.Bus, Store: c.Store, Cluster: logs, Engine: name, Holder: wiring.ProcessName(), Log: c.Log,
		}))
	}
	return parts, nil
}
