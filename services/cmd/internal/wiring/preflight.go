package wiring

import (
	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/gateway/preflight"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/plan"
)

// NewPreflight returns the dependencies of the gateway's preflight checks, and a
// function that releases them.
func NewPreflight(s executor.Settings, f dataset.Settings, d dataset.Deps, c cluster.Surveyor, images plan.Images) (preflight.Deps, func(), error) {
	r, err := d.NewReader(f.Sources)
	if err != nil {
		return preflight.Deps{}, nil, err
	}
	planner := s.Planner(images == nil)
	planner.Images = images
	return preflight.Deps{Planner: planner, Cluster: c, Sources: r}, r.Close, nil
}
