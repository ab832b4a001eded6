package executor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/benchmark-ai/bai/services/executor/launch"
	"github.com/benchmark-ai/bai/services/executor/slots"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/plan"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// EngineSettings are the settings of an engine beside the default one.
type EngineSettings struct {
	Kind           string             // local, kubernetes or exec
	Slots          int                // maximum number of runs that hold a slot there; zero means 4
	Pods           transpile.Settings // as for the default engine
	NoLimitsReason string             // why a local cluster enforces no limits of CPU and memory; empty means that it does
}

// validateEngines names every setting of an engine at fault.
func (s Settings) validateEngines() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.Engines)) {
		if e := s.Engines[name]; !slices.Contains([]string{plan.EngineLocal, plan.EngineKubernetes, plan.EngineExec}, e.Kind) {
			errs = append(errs, fmt.Errorf("engines.%s.kind: %q, want %s, %s or %s", name, e.Kind, plan.EngineLocal,
				plan.EngineKubernetes, plan.EngineExec))
		}
	}
	return errors.Join(errs...)
}

// launchers has the launcher of each engine by its key, which is empty for the default one.
// It implements slots.Tasks.
type launchers map[string]launcher

type launcher struct {
	*launch.Launcher

	cluster cluster.Deleter
}

func newLaunchers(s Settings, d Deps, planner plan.Planner, docs launch.Documents) launchers {
	keep, _ := launch.ParseKeep(s.Keep) // Settings.Validate has checked it
	all := make(launchers)
	add := func(engine, noLimits string, c launch.Cluster) {
		all[engine] = launcher{cluster: c, Launcher: launch.New(
			launch.Settings{Engine: engine, Keep: keep, Poll: s.Poll, Reconcile: s.Reconcile, NoLimitsReason: noLimits}, planner.On(engine),
			launch.Deps{Docs: docs, Cluster: c, Publish: d.Bus.Publish, Token: d.Token, Clock: d.Clock, Log: d.Log})}
	}
	add("", s.NoLimitsReason, d.Cluster)
	for name, engine := range s.Engines {
		add(name, engine.NoLimitsReason, d.Engines[name])
	}
	return all
}

// Do implements slots.Tasks.
func (l launchers) Do(ctx context.Context, t slots.Task, a slots.Allocation, item *slots.Item) (slots.Progress, error) {
	on, ok := l[a.Engine]
	if !ok {
		return slots.Progress{}, unknownEngineError(a.Engine)
	}
	return on.Do(ctx, t, a, item)
}

// Discard implements slots.Tasks.
func (l launchers) Discard(ctx context.Context, item slots.Item) (bool, error) {
	return l[""].Discard(ctx, item)
}

// delete deletes the objects of an attempt on an engine.
func (l launchers) delete(ctx context.Context, engine string, r cluster.Ref) error {
	on, ok := l[engine]
	if !ok {
		return unknownEngineError(engine)
	}
	return on.cluster.Delete(ctx, r)
}

// runnables returns, by name, the runnables that delete objects whose retention has
// expired, and those that run the steps for which ends wait.
func (l launchers) runnables() map[string]service.Runnable {
	all := make(map[string]service.Runnable)
	for engine, on := range l {
		suffix := ""
		if engine != "" {
			suffix = "/" + engine
		}
		all["executor/sweep"+suffix] = on.Sweep().Run
		all["executor/always"+suffix] = on.Steps().Run
	}
	return all
}

// unknownEngineError returns the error about an attempt that was admitted before its engine
// was taken out of the settings.
func unknownEngineError(engine string) error {
	return fmt.Errorf("the settings have no engine %q any more: put engines.%s back until its runs have ended", engine, engine)
}
