package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/price"
	"github.com/benchmark-ai/bai/services/analyst"
	receivers "github.com/benchmark-ai/bai/services/analyst/receiver/open"
	"github.com/benchmark-ai/bai/services/cmd/bai/internal/datadir"
	"github.com/benchmark-ai/bai/services/cmd/internal/wiring"
	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/gateway"
	"github.com/benchmark-ai/bai/services/internal/blob/bucket"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/config"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/registry"
	"github.com/benchmark-ai/bai/services/internal/run"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/internal/telemetry"
	destinations "github.com/benchmark-ai/bai/services/metrics-pusher/deliver/open"
	"github.com/benchmark-ai/bai/services/metrics-pusher/follow"
	"github.com/benchmark-ai/bai/services/metrics-pusher/index"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/open"
	"github.com/benchmark-ai/bai/services/metrics-pusher/summarise"
	"github.com/benchmark-ai/bai/services/watcher"
)

// options are the flags of the command line.
type options struct {
	data, listen, config, podBinary string
	slots                           int
	without                         []string
	keepPods, replay, noNamespaces  bool
	allowAnyone                     bool // anyone may reach the API
	kube                            kubeOptions
	external                        externalServices
	out, log                        io.Writer
}

// settings are the settings of the file, over the defaults for one machine.
type settings struct {
	Log      run.Log
	Kafka    kafka.Settings
	Gateway  gateway.Settings
	Fetcher  dataset.Settings
	Buckets  bucket.Settings
	Executor executor.Settings
	Watcher  watcher.Settings
	Follow   follow.Settings // followers of the logs of images' own entrypoints
	Index    index.Settings  `toml:"metrics-pusher"`

	Summaries summarise.Settings
	// of machines: money per hour by instance type, such as "p3.2xlarge" = "3.06 USD"; without one of its machines, a run has no cost
	Prices    price.Table
	Sinks     open.Settings // receivers of copies of samples
	Analyst   analyst.Settings
	Receivers receivers.Settings // places for notices of incidents, which descriptors name

	Destinations destinations.Settings // places for results beside the store, which descriptors name
	// Health is the address of /healthz, /readyz and /metrics; empty means none.
	Health    string
	Telemetry telemetry.Settings
	// Elasticsearch is the store if it has addresses.
	Elasticsearch elastic.Settings
	// Kubernetes is the cluster for pods; without it, pods run on this machine.
	Kubernetes kube.Settings
	Engines    map[string]wiring.Engine // clusters beside the default one, by the name that descriptors give in info.execution_engine
	Registry   registry.Settings        // registries that are asked about images' own entrypoints
}

// Validate implements config.Validator.
func (s *settings) Validate() error {
	var outside []error
	if len(s.Kafka.Brokers) > 0 {
		outside = append(outside, s.Kafka.Validate())
	}
	if len(s.Elasticsearch.Addresses) > 0 {
		outside = append(outside, s.Elasticsearch.Validate())
	}
	return errors.Join(errors.Join(outside...), s.Log.Validate(), s.Gateway.Validate(), s.Fetcher.Validate(), s.Buckets.Validate(),
		s.Executor.Validate(), s.Watcher.Validate(), s.Follow.Validate(), s.Index.Validate(), s.Summaries.Validate(), s.Prices.Validate(),
		s.Sinks.Validate(), s.Destinations.Validate(), s.Analyst.Validate(), s.Receivers.Validate(), s.Kubernetes.Validate(),
		s.Registry.Validate(), s.Kubernetes.ValidateOperator(s.Executor.Pods.MPIOperator),
		kube.ValidateManifests(s.Kubernetes, s.Executor.Pods.Manifests),
		wiring.ValidateEngines(s.Engines, s.Executor.Pods), s.Telemetry.Validate())
}

// load returns the settings: the defaults for one machine, overridden by the file, and
// then by the command line.
func (o options) load() (settings, error) {
	var s settings
	s.Log.Format = "console"
	s.Executor.Pods.MaxLog = 256 << 20
	s.Fetcher.Sources.Networks = []string{"loopback"} // for servers on the machine itself
	if err := config.Load(o.config, &s); err != nil {
		return s, err
	}
	o.kube.apply(&s)
	o.external.apply(&s)
	if !s.Kubernetes.Set() {
		s.Executor.Slots = cmp.Or(s.Executor.Slots, 1) // two benchmarks on one machine disturb each other
	}
	if o.slots < 0 {
		return s, fmt.Errorf("--slots %d: must not be negative", o.slots)
	}
	if o.slots > 0 {
		s.Executor.Slots = o.slots
	}
	return s, nil
}

// services returns the names of the services that one process can run.
func services() []string {
	return []string{"gateway", "fetcher", "executor", "watcher", "metrics-pusher", "analyst"}
}

// check returns the fault of the command line, or nil.
func (o options) check() error {
	if o.data == "" {
		return fmt.Errorf("--data is empty, as where a variable is not set: name a directory, or leave --data out for %s",
			datadir.Default())
	}
	for _, name := range o.without {
		if !slices.Contains(services(), name) {
			return fmt.Errorf("--without %q: not a service: use %s", name, strings.Join(services(), ", "))
		}
	}
	return nil
}

// findPodBinary returns the path of the program that runs in pods.
func (o options) findPodBinary() (string, error) {
	if o.podBinary != "" {
		path, err := filepath.Abs(o.podBinary)
		if err != nil {
			return "", fmt.Errorf("--pod-binary: %w", err)
		}
		_, err = os.Stat(path)
		return path, err
	}
	if self, err := os.Executable(); err == nil {
		if path := filepath.Join(filepath.Dir(self), "bai-pod"); executable(path) {
			return path, nil
		}
	}
	path, err := exec.LookPath("bai-pod")
	if err != nil {
		return "", errors.New("the program bai-pod is neither beside bai nor on PATH: build it with 'make build', or name it with --pod-binary")
	}
	return filepath.Abs(path)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
