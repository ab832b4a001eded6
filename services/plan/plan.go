// Package plan makes the objects of runs from their descriptors. The gateway uses it to
// check and preview descriptors, and the executor to launch them, so both apply the
// same settings in the same way.
package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan/refusal"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// Engines of an executor.
const (
	EngineLocal      = "local"
	EngineKubernetes = "kubernetes"
)

// Images asks registries about images whose own entrypoint is run.
type Images interface {
	// Image returns the answer of an image's registry, or the reason why there is none.
	// The only error is that ctx is done.
	Image(ctx context.Context, q cluster.ImageQuery) (cluster.Image, error)
}

// Planner makes plans for one cluster. Use New to create one.
type Planner struct {
	Engine string
	Pods   transpile.Settings
	Images Images // nil if Pods has NoRegistry

	Destinations map[string][]string // that descriptors may name, with the namespaces of each (none means all); nil: nothing is known of them
	Receivers    map[string][]string // that alarms may notify, likewise
}

// New returns a planner for the cluster of an engine, where "" means local. It adds the
// pod settings that follow from the engine. The planner asks registries unless
// noRegistry is true.
func New(engine string, pods transpile.Settings, noRegistry bool) Planner {
	local := engine != EngineKubernetes
	if local {
		engine = EngineLocal
	}
	pods.NoRegistry = pods.NoRegistry || noRegistry
	pods.NoLimits = pods.NoLimits || local
	pods.OneMachine, pods.Owner = local, !local
	pods.Shared.Off = pods.Shared.Off || local
	return Planner{Engine: engine, Pods: pods}
}

// Local reports whether pods run on this machine.
func (p Planner) Local() bool { return p.Engine == EngineLocal }

// engines returns the engines that a descriptor may name.
func (p Planner) engines() []string { return []string{"default", p.Engine} }

// Parser returns the parser that checks new descriptors.
func (p Planner) Parser() parser.Parser {
	parser := parser.Parser{
		Instances: p.Pods.Instances, Engines: p.engines(), OneMachine: p.Local(), Allow: p.allowed(), Destinations: p.Destinations, Receivers: p.Receivers,
	}
	if !parser.OneMachine {
		parser.Manifests = append([]string{}, slices.Sorted(maps.Keys(p.Pods.Manifests))...)
		if len(p.Pods.Placements) > 0 {
			parser.Placements = p.Pods.Placements
		}
		parser.NodeSelector, parser.PullPolicy = p.Pods.NodeSelector, p.Pods.PullPolicy
		parser.Zones = append([]string{}, slices.Sorted(maps.Keys(p.Pods.Zones))...)
	}
	return parser
}

// Parse parses the descriptor of a run. The gateway has accepted the descriptor. The
// settings may have changed since, and Objects checks the descriptor against them.
func (p Planner) Parse(run event.Fetched) (*descriptors.Descriptor, parser.Faults) {
	parser := p.Parser()
	parser.Accepted = true
	return parser.Parse(run.File, []byte(run.Descriptor))
}

// Objects returns the objects of an attempt. The only error is *refusal.Error.
func (p Planner) Objects(in transpile.Input) (transpile.Workload, error) {
	if err := p.checkEngine(in.Descriptor); err != nil {
		return transpile.Workload{}, err
	}
	if err := p.checkReferences(in.Run, in.Descriptor); err != nil {
		return transpile.Workload{}, err
	}
	return transpile.Objects(in, p.Pods)
}

// checkEngine refuses a descriptor that names an engine which this platform does not
// have.
func (p Planner) checkEngine(d *descriptors.Descriptor) error {
	if e := d.Info.ExecutionEngine; e == "" || slices.Contains(p.engines(), e) {
		return nil
	}
	return &refusal.Error{Reason: event.EngineUnavailable, Message: fmt.Sprintf(
		"info.execution_engine is %q, which this platform does not have: it has %s", d.Info.ExecutionEngine, strings.Join(p.engines(), ", "))}
}

// Preview returns the objects of the first attempt of a run of d, which was read from
// text, and the registry answers that the objects depend on. The run has code sent
// along if d asks for it or withCode is set. The error is for the user.
func (p Planner) Preview(ctx context.Context, d *descriptors.Descriptor, text []byte, withCode bool) (transpile.Workload, []cluster.Image, error) {
	if err := p.checkEngine(d); err != nil {
		return transpile.Workload{}, nil, err
	}
	images, err := p.AskRegistries(ctx, d)
	if err != nil {
		return transpile.Workload{}, nil, err
	}
	w, err := transpile.Preview(d, text, withCode, p.Pods, images...)
	return w, images, err
}

// Render returns the objects of Preview as YAML, without asking a registry.
func (p Planner) Render(d *descriptors.Descriptor, text []byte, withCode bool) ([]byte, error) {
	return transpile.Manifest(d, text, withCode, p.Pods)
}

// AskRegistries returns the registry answers for all images of d whose own entrypoint
// is run, or nil if there are none. The only error is that ctx is done.
func (p Planner) AskRegistries(ctx context.Context, d *descriptors.Descriptor) ([]cluster.Image, error) {
	var images []cluster.Image
	for _, q := range transpile.Images(d, p.Pods) {
		image, err := p.Images.Image(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("ask the registry of %s: %w", q.Name, err)
		}
		images = append(images, image)
	}
	return images, nil
}
