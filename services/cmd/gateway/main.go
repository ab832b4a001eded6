// Command gateway accepts runs, projects their state, and answers requests about them.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"

	"github.com/benchmark-ai/bai/proto"
	receivers "github.com/benchmark-ai/bai/services/analyst/receiver/open"
	"github.com/benchmark-ai/bai/services/cmd/internal/program"
	"github.com/benchmark-ai/bai/services/cmd/internal/wiring"
	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/gateway"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/internal/blob/bucket"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/git"
	"github.com/benchmark-ai/bai/services/internal/listener"
	"github.com/benchmark-ai/bai/services/internal/registry"
	"github.com/benchmark-ai/bai/services/internal/service"
	destinations "github.com/benchmark-ai/bai/services/metrics-pusher/deliver/open"
	"github.com/benchmark-ai/bai/services/plan"
)

// version is set when the program is built.
var version = "unknown"

func main() { program.Main("gateway", &settings{}) }

type settings struct {
	program.Settings

	Listen  string         // address of the API; empty means 127.0.0.1:7070
	Objects wiring.Objects // stores artifacts, code and data sets; without a URL, the gateway has none
	Gateway gateway.Settings

	Fetcher  dataset.Settings  // rules for reading data and descriptors
	Buckets  bucket.Settings   // access to buckets
	Executor executor.Settings // settings for checking and rendering descriptors
	// Kubernetes is the cluster for preflight checks. Without it there are none.
	Kubernetes kube.Settings
	Engines    map[string]wiring.Engine // clusters beside the default one, by the name that descriptors give in info.execution_engine
	Registry   registry.Settings        // registries that are asked about images' own entrypoints

	Destinations destinations.Settings // that descriptors may name
	Receivers    receivers.Settings    // that alarms may notify
}

// Validate implements config.Validator.
func (s *settings) Validate() error {
	var objects error
	if s.Objects.URL != "" {
		objects = s.Objects.Validate()
	}
	return errors.Join(s.Settings.Validate(), objects, s.Gateway.Validate(), s.Fetcher.Validate(), s.Buckets.Validate(),
		s.Executor.Validate(), s.Kubernetes.Validate(), s.Registry.Validate(), wiring.ValidateEngines(s.Engines, s.Executor.Pods),
		wiring.RefuseLocalEngines(s.Engines), s.Destinations.Validate(), s.Receivers.Validate())
}

// Parts implements program.Service.
func (s *settings) Parts(ctx context.Context, c *program.Common) (map[string]service.Runnable, error) {
	s.Executor.Destinations, s.Executor.Receivers = s.Destinations.Namespaces(), s.Receivers.Namespaces()
	s.Executor.Engines = wiring.EngineSettings(s.Engines, s.Executor.Pods)
	planner := s.Executor.Planner(s.Registry.Off)
	deps := gateway.Deps{
		Bus: c.Bus, Store: c.Store, Parser: planner.Parser(), Renderer: planner, Token: c.Bus.Token, OpenAPI: proto.OpenAPI(),
		Entropy: rand.Reader, Ready: c.Bus.Ready, Notes: c.Bus.UnsignedWarning, Version: rpc.Version{Version: version}, Log: c.Log,
		Receivers: s.Receivers.Resolver(c.Log),
	}
	s.Fetcher.Sources.ObjectStoreURL = s.Objects.URL
	source, err := wiring.NewSource(s.Fetcher.Sources, s.Buckets)
	if err != nil {
		return nil, err
	}
	c.OnClose(func() error { source.Close(); return nil })
	deps.Source = source
	if s.Objects.URL != "" {
		if err := s.openObjects(ctx, c, &deps); err != nil {
			return nil, err
		}
	}
	if s.Kubernetes.Set() {
		if err := s.openPreflight(c, &deps); err != nil {
			return nil, err
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cmp.Or(s.Listen, "127.0.0.1:7070"))
	if err != nil {
		return nil, fmt.Errorf("listen for users: %w", err)
	}
	deps.Listener = listener.Retry(l)
	return gateway.New(s.Gateway, deps), nil
}

// openPreflight opens the cluster for preflight checks.
func (s *settings) openPreflight(c *program.Common, deps *gateway.Deps) error {
	k, err := kube.New(s.Kubernetes, c.Log)
	if err != nil {
		return err
	}
	c.OnClose(func() error { k.Close(); return nil })
	buckets, err := bucket.New(s.Buckets)
	if err != nil {
		return err
	}
	d := dataset.Deps{Buckets: source.OpenBuckets(buckets), Repositories: source.OpenRepositories(git.Opener{})}
	images, err := registry.New(s.Registry, k)
	if err != nil {
		return err
	}
	c.OnClose(func() error { images.Close(); return nil })
	engines, asked, err := s.openEngines(c)
	if err != nil {
		return err
	}
	asked[""] = images
	flight, closeSources, err := wiring.NewPreflight(s.Executor, s.Fetcher, d, k, engines, asked)
	if err != nil {
		return err
	}
	c.OnClose(func() error { closeSources(); return nil })
	deps.Preflight = flight
	return nil
}

// openEngines opens the clusters beside the default one, and the clients of their registries.
func (s *settings) openEngines(c *program.Common) (map[string]cluster.Surveyor, map[string]plan.Images, error) {
	engines, err := wiring.OpenEngines(s.Engines, true, c.Log)
	if err != nil {
		return nil, nil, err
	}
	surveyors, images := make(map[string]cluster.Surveyor, len(engines)), make(map[string]plan.Images)
	for name, k := range engines {
		c.OnClose(func() error { k.Close(); return nil })
		surveyors[name] = k
	}
	release, err := wiring.AddImages(images, s.Registry, engines)
	if err != nil {
		return nil, nil, err
	}
	c.OnClose(func() error { release(); return nil })
	return surveyors, images, nil
}

// openObjects opens the object store, which has the artifacts of runs and the data
// sets.
func (s *settings) openObjects(ctx context.Context, c *program.Common, deps *gateway.Deps) error {
	objects, err := s.Objects.Open(ctx, c.Log)
	if err != nil {
		return err
	}
	c.OnClose(objects.Close)
	deps.Objects = objects
	buckets, err := bucket.New(s.Buckets)
	if err != nil {
		return err
	}
	stock, err := dataset.New(s.Fetcher, dataset.Deps{
		Store: c.Store, Objects: objects, Log: c.Log, Buckets: source.OpenBuckets(buckets),
		Repositories: source.OpenRepositories(git.Opener{}),
	})
	if err != nil {
		return err
	}
	deps.DatasetCache = stock
	return nil
}
