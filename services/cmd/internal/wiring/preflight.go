package wiring

import (
	"cmp"
	"fmt"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/executor/transpile"
	"github.com/benchmark-ai/bai/services/fetcher"
	"github.com/benchmark-ai/bai/services/fetcher/source"
	"github.com/benchmark-ai/bai/services/gateway/preflight"
	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// Planner says which objects runs would be. It implements preflight.Planner.
type Planner struct {
	pods   transpile.Settings
	engine string
}

// NewPlanner returns a Planner of what an executor of these settings creates.
func NewPlanner(s executor.Settings) *Planner {
	return &Planner{pods: NewRenderer(s).pods, engine: cmp.Or(s.Engine, executor.EngineLocal)}
}

// Plan implements preflight.Planner.
func (p *Planner) Plan(d *descriptors.Descriptor, text []byte) ([]cluster.Object, string, error) {
	if e := d.Info.ExecutionEngine; e != "" && e != "default" && e != p.engine {
		return nil, "", fmt.Errorf("info.execution_engine is %q, which this platform does not have: it has default, %s", e, p.engine)
	}
	plan, err := transpile.Preview(d, text, false, p.pods)
	return plan.Objects, plan.Scope, err
}

// NewPreflight returns what the gateway needs to hold runs against a cluster
// before they begin, and what to do when it has ended.
func NewPreflight(s executor.Settings, f fetcher.Settings, d fetcher.Deps, c cluster.Surveyor) (preflight.Deps, func(), error) {
	r, err := source.New(f.Sources)
	if err != nil {
		return preflight.Deps{}, nil, err
	}
	r.ReadBuckets(d.Buckets)
	r.ReadRepositories(d.Repositories)
	return preflight.Deps{Planner: NewPlanner(s), Cluster: c, Sources: r}, r.Close, nil
}
