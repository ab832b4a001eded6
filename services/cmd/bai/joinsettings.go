package main

import "github.com/benchmark-ai/bai/services/cmd/bai/internal/joining"

// joinSettings returns the settings with which a service in another process joins this
// platform.
func (p *platform) joinSettings() joining.Settings {
	j := joining.Settings{Store: p.dir.Join("store.db"), Objects: p.objectSettings(), Kafka: p.settings.Kafka}
	if len(p.settings.Elasticsearch.Addresses) > 0 {
		j.Store, j.Elasticsearch = "", &p.settings.Elasticsearch
	}
	if p.kube != nil {
		e := p.executorSettings()
		j.Engines = p.settings.joinableEngines()
		j.Kubernetes, j.Executor, j.Watcher, j.Registry = &p.settings.Kubernetes, &e, &p.settings.Watcher, &p.settings.Registry
	}
	return j
}

// writeServices writes these settings into the data directory.
func (p *platform) writeServices() error { return p.joinSettings().Write(p.dir.Path) }
