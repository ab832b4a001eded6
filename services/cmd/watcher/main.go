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
	"github.com/benchmark-ai/bai/services/watcher"
)

func main() { program.Main("watcher", &settings{}) }

type settings struct {
	program.Settings
	pods.Clusters

	Watcher watcher.Settings
	Follow  follow.Settings // followers of the logs of images' own entrypoints
}

// Validate implements config.Validator.
func (s *settings) Validate() error {
	return errors.Join(s.Settings.Validate(), s.Clusters.Validate(), s.Watcher.Validate(), s.Follow.Validate())
}

// Parts implements program.Service.
func (s *settings) Parts(ctx context.Context, c *program.Common) (map[string]service.Runnable, error) {
	cluster, err := s.Open(c.Log) //nolint:contextcheck // it outlives the start
	if err != nil {
		return nil, err
	}
	c.OnClose(func() error { return cluster.Close(context.WithoutCancel(ctx)) })
	c.Checks["cluster"] = cluster.Ready
	parts := watcher.New(s.Watcher, watcher.Deps{Bus: c.Bus, Store: c.Store, Cluster: cluster, Log: c.Log})
	if cluster.Logs != nil {
		maps.Copy(parts, follow.New(s.Follow, follow.Deps{
			Bus: c.Bus, Store: c.Store, Cluster: wiring.NewLogs(cluster, cluster.Logs), Holder: wiring.ProcessName(), Log: c.Log,
		}))
	}
	return parts, nil
}
