package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/benchmark-ai/bai/services/cmd/internal/wiring"
	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/config"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/registry"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/watcher"
)

// joinSettings are the settings with which a service in another process joins a
// platform. The executor and the watcher can join only if pods run in Kubernetes, since
// the pods of one machine belong to one process.
type joinSettings struct {
	Store string `toml:"store,omitempty"`

	Elasticsearch *elastic.Settings `toml:"elasticsearch,omitempty"`

	Objects    blob.Settings            `toml:"objects"`
	Kafka      kafka.Settings           `toml:"kafka"`
	Kubernetes *kube.Settings           `toml:"kubernetes,omitempty"`
	Engines    map[string]wiring.Engine `toml:"engines,omitempty"`
	Executor   *executor.Settings       `toml:"executor,omitempty"`
	Watcher    *watcher.Settings        `toml:"watcher,omitempty"`
	Registry   *registry.Settings       `toml:"registry,omitempty"`
}

// writeServices writes the settings with which a service in another process joins this
// platform.
func (p *platform) writeServices() error {
	j := joinSettings{Store: p.dir.Join("store.db"), Objects: p.objectSettings(), Kafka: p.settings.Kafka}
	if len(p.settings.Elasticsearch.Addresses) > 0 {
		j.Store, j.Elasticsearch = "", &p.settings.Elasticsearch
	}
	if p.kube != nil {
		e := p.executorSettings()
		j.Engines = p.settings.joinableEngines()
		j.Kubernetes, j.Executor, j.Watcher, j.Registry = &p.settings.Kubernetes, &e, &p.settings.Watcher, &p.settings.Registry
	}
	path := p.dir.Join("services.toml")
	text, err := j.text()
	if err == nil {
		err = os.WriteFile(path+".new", text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return os.Rename(path+".new", path)
}

func (j joinSettings) text() ([]byte, error) {
	text, err := config.Text(j)
	return append([]byte("# How a service joins this platform from a process of its own.\n"), text...), err
}
