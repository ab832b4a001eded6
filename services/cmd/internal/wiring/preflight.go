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
//
// The images and engines are by the name of the engine, the default one being empty in
// images and c in place of engines.
func NewPreflight(
	s executor.Settings, f dataset.Settings, d dataset.Deps, c cluster.Surveyor, engines map[string]cluster.Surveyor,
	images map[string]plan.Images,
) (preflight.Deps, func(), error) {
	r, err := d.NewReader(f.Sources)
	if err != nil {
		return preflight.Deps{}, nil, err
	}
	planner := s.Planner(false).Ask(images)
	return preflight.Deps{Planner: planner, EngineOf: planner.EngineOf, Cluster: c, Engines: engines, Sources: r}, r.Close, nil
}
