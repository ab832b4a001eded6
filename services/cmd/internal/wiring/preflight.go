package wiring

import (
	"cmp"
	"context"
	"fmt"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/executor/transpile"
	"github.com/benchmark-ai/bai/services/gateway/preflight"
	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// Planner says which objects runs would be. It implements preflight.Planner.
type Planner struct {
	pods   transpile.Settings
	engine string
	images executor.Images
}

// NewPlanner returns a Planner of what an executor of these settings creates, which
// asks images' registries as far as images is not nil.
func NewPlanner(s executor.Settings, images executor.Images) *Planner {
	return &Planner{pods: NewRenderer(s, images == nil).pods, engine: cmp.Or(s.Engine, executor.EngineLocal), images: images}
}

// Plan implements preflight.Planner.
func (p *Planner) Plan(ctx context.Context, d *descriptors.Descriptor, text []byte, withCode bool) (preflight.PlannedRun, error) {
	if e := d.Info.ExecutionEngine; e != "" && e != "default" && e != p.engine {
		return preflight.PlannedRun{}, fmt.Errorf("info.execution_engine is %q, which this platform does not have: it has default, %s", e, p.engine)
	}
	var images []cluster.Image
	for _, q := range transpile.Images(d, p.pods) {
		image, err := p.images.Image(ctx, q)
		if err != nil {
			return preflight.PlannedRun{}, err
		}
		images = append(images, image)
	}
	plan, err := transpile.Preview(d, text, withCode, p.pods, images...)
	return preflight.PlannedRun{Objects: plan.Objects, Scope: plan.Scope, Images: images}, err
}

// NewPreflight returns what the gateway needs to hold runs against a cluster
// before they begin, and what to do when it has ended.
func NewPreflight(s executor.Settings, f dataset.Settings, d dataset.Deps, c cluster.Surveyor, images executor.Images) (preflight.Deps, func(), error) {
	r, err := d.NewReader(f.Sources)
	if err != nil {
		return preflight.Deps{}, nil, err
	}
	return preflight.Deps{Planner: NewPlanner(s, images), Cluster: c, Sources: r}, r.Close, nil
}
