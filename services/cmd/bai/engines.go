package main

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/cmd/internal/wiring"
	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/executor/launch"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	programs "github.com/benchmark-ai/bai/services/internal/cluster/executable"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/cluster/local"
	"github.com/benchmark-ai/bai/services/metrics-pusher/follow"
	"github.com/benchmark-ai/bai/services/plan"
	"github.com/benchmark-ai/bai/services/watcher"
)

// engines are the clusters beside the default one, by name.
type engines struct {
	kube  map[string]*kube.Cluster
	local map[string]*local.Cluster
	exec  map[string]*programs.Cluster
}

// usesLocal reports whether some pods run on this machine.
func (s *settings) usesLocal() bool {
	if !s.Kubernetes.Set() {
		return true
	}
	for _, e := range s.Engines {
		if e.Local() {
			return true
		}
	}
	return false
}

// kubernetes returns the cluster of the first engine of that kind, the default one being the
// first of all. It is false if no pods run in Kubernetes.
func (s *settings) kubernetes() (kube.Settings, bool) {
	if s.Kubernetes.Set() {
		return s.Kubernetes, true
	}
	for _, name := range slices.Sorted(maps.Keys(s.Engines)) {
		if e := s.Engines[name]; e.Kind == plan.EngineKubernetes {
			return e.Settings, true
		}
	}
	return kube.Settings{}, false
}

// localSlots returns the number of runs that this machine may run at a time.
func (s *settings) localSlots() int {
	slots := s.Executor.Slots
	for _, e := range s.Engines {
		if e.Local() {
			slots += cmp.Or(e.Slots, 1)
		}
	}
	return slots
}

// openEngines opens the clusters beside the default one.
func (p *platform) openEngines() (err error) {
	if p.engines.kube, err = wiring.OpenEngines(p.settings.Engines, false, p.log); err != nil {
		return err
	}
	for _, k := range p.engines.kube {
		p.onClose(func() error { k.Close(); return nil })
	}
	if p.engines.exec, err = wiring.OpenPrograms(p.settings.Engines, p.log); err != nil {
		return err
	}
	for _, e := range p.engines.exec {
		p.onClose(func() error { e.Close(); return nil })
	}
	p.engines.local = make(map[string]*local.Cluster)
	for _, name := range slices.Sorted(maps.Keys(p.settings.Engines)) {
		e := p.settings.Engines[name]
		if !e.Local() {
			continue
		}
		if p.engines.local[name], err = p.openLocalCluster(cmp.Or(e.Dir, p.dir.Join(filepath.Join("engines", name)))); err != nil {
			return fmt.Errorf("open engine %s: %w", name, err)
		}
	}
	for name, e := range p.settings.Engines {
		p.log.Info("descriptors may name an engine", zap.String("engine", name), zap.String("kind", e.Kind))
	}
	return nil
}

// engineSettings returns the executor's settings of the engines, with the addresses of this
// platform that the default engine's pods have.
func (p *platform) engineSettings(base executor.Settings) map[string]executor.EngineSettings {
	all := wiring.EngineSettings(p.settings.Engines, base.Pods)
	for name, c := range p.engines.local {
		e := all[name]
		e.NoLimitsReason, e.Pods.Reserve = c.Limits(), p.disk().OutputReserve()
		all[name] = e
	}
	for name := range p.engines.kube {
		e := all[name]
		e.Pods.Reserve, e.Pods.Image = 0, cmp.Or(e.Pods.Image, podImage())
		all[name] = e
	}
	return all
}

// launchClusters returns the clusters beside the default one for the executor.
func (p *platform) launchClusters() map[string]launch.Cluster {
	all := make(map[string]launch.Cluster)
	for name, c := range p.engines.kube {
		all[name] = c
	}
	for name, c := range p.engines.local {
		all[name] = c
	}
	for name, c := range p.engines.exec {
		all[name] = c
	}
	return all
}

// surveyors does the same for preflight checks. A program cannot be asked.
func (p *platform) surveyors() map[string]cluster.Surveyor {
	all := make(map[string]cluster.Surveyor)
	for name, c := range p.engines.kube {
		all[name] = c
	}
	for name, c := range p.engines.local {
		all[name] = c
	}
	return all
}

// followed returns the clusters whose logs are followed, by engine.
func (p *platform) followed() map[string]follow.Cluster {
	all := make(map[string]follow.Cluster)
	if p.kube != nil {
		all[""] = p.kube
	}
	for name, c := range p.engines.kube {
		all[name] = c
	}
	for name, c := range p.engines.exec {
		all[name] = c
	}
	return all
}

// watchedEngines does the same for the watcher.
func (p *platform) watchedEngines() map[string]watcher.Engine {
	all := make(map[string]watcher.Engine)
	for name, c := range p.engines.kube {
		all[name] = watcher.Engine{Cluster: c, Ready: c.Ready, Annotator: c}
	}
	for name, c := range p.engines.local {
		all[name] = watcher.Engine{Cluster: c}
	}
	for name, c := range p.engines.exec {
		all[name] = watcher.Engine{Cluster: c, Ready: c.Ready}
	}
	return all
}

// joinableEngines returns the engines that services in other processes can use.
func (s *settings) joinableEngines() map[string]wiring.Engine {
	all := maps.Clone(s.Engines)
	maps.DeleteFunc(all, func(_ string, e wiring.Engine) bool { return e.Local() })
	return all
}
