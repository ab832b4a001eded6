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
	EngineExec       = "exec" // a program, never the default engine
)

// Images asks registries about images whose own entrypoint is run.
type Images interface {
	// Image returns the answer of an image's registry, or the reason why there is none.
	// The only error is that ctx is done.
	Image(ctx context.Context, q cluster.ImageQuery) (cluster.Image, error)
}

// Planner makes plans for the clusters of a platform. Use New to create one.
type Planner struct {
	Engine string // name of the engine: that of its settings, or local or kubernetes for the default one
	Exec   bool   // the engine is a program, which runs the benchmark alone
	Pods   transpile.Settings
	Images Images // nil if Pods has NoRegistry

	// that descriptors may name, with the namespaces of each (none means all); nil: nothing is known of them
	Destinations map[string][]string
	Receivers    map[string][]string // that alarms may notify, likewise

	Named map[string]Planner // planners of the engines beside this one, by name; they have none of their own
}

// New returns a planner for the cluster of an engine, where "" means local. It adds the
// pod settings that follow from the engine. The planner asks registries unless
// noRegistry is true.
func New(engine string, pods transpile.Settings, noRegistry bool) Planner {
	local, program := engine != EngineKubernetes, engine == EngineExec
	if local && !program {
		engine = EngineLocal
	}
	pods.NoRegistry = pods.NoRegistry || noRegistry
	pods.NoLimits = pods.NoLimits || local
	pods.OneMachine, pods.Owner = local, !local
	pods.Shared.Off = pods.Shared.Off || local
	return Planner{Engine: engine, Exec: program, Pods: pods}
}

// Local reports whether pods run without images, on one machine: this one, or that of a
// program.
func (p Planner) Local() bool { return p.Pods.OneMachine }

// engines returns the engines that a descriptor may name.
func (p Planner) engines() []string {
	return append([]string{"default", p.Engine}, slices.Sorted(maps.Keys(p.Named))...)
}

// EngineOf returns the key of the engine that a descriptor names: its name if it has
// settings of its own, and "" for the default engine.
func (p Planner) EngineOf(d *descriptors.Descriptor) string {
	if _, named := p.Named[d.Info.ExecutionEngine]; named {
		return d.Info.ExecutionEngine
	}
	return ""
}

// On returns the planner of the engine with a key. That of the default engine also takes
// runs of engines that are not in the settings any more, and refuses to make their plans.
func (p Planner) On(engine string) Planner {
	if named, ok := p.Named[engine]; ok {
		return named
	}
	return p
}

// Ask returns the planner with clients of registries, by the key of the engine that they
// are asked for. Without one, an engine asks no registries.
func (p Planner) Ask(images map[string]Images) Planner {
	p.Images = images[""]
	p.Pods.NoRegistry = p.Pods.NoRegistry || p.Images == nil
	p.Named = maps.Clone(p.Named)
	for name, named := range p.Named {
		named.Images = images[name]
		named.Pods.NoRegistry = named.Pods.NoRegistry || named.Images == nil
		p.Named[name] = named
	}
	return p
}

// Parser returns the parser that checks new descriptors.
func (p Planner) Parser() parser.Parser {
	whole := p.ownParser()
	if len(p.Named) > 0 {
		whole.Named = make(map[string]parser.Parser, len(p.Named))
	}
	for name, named := range p.Named {
		whole.Named[name] = named.ownParser()
	}
	return whole
}

// ownParser returns the parser without those of other engines.
func (p Planner) ownParser() parser.Parser {
	parser := parser.Parser{
		Instances: p.Pods.Instances, Engines: p.engines(), OneMachine: p.Local(), CustomParams: p.Exec, Allow: p.allowed(),
		Destinations: p.Destinations, Receivers: p.Receivers,
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
	on := p.On(in.Descriptor.Info.ExecutionEngine)
	if err := on.checkReferences(in.Run, in.Descriptor); err != nil {
		return transpile.Workload{}, err
	}
	w, err := transpile.Objects(in, on.Pods)
	if err == nil && on.Exec {
		err = addCustomParams(w, in.Descriptor)
	}
	return w, err
}

// checkEngine refuses a descriptor that names an engine which this platform does not
// have.
func (p Planner) checkEngine(d *descriptors.Descriptor) error {
	if e := d.Info.ExecutionEngine; e == "" || slices.Contains(p.engines(), e) {
		return nil
	}
	return &refusal.Error{Reason: event.EngineUnavailable, Message: fmt.Sprintf(
		"info.execution_engine is %q, which this platform does not have: it has %s", d.Info.ExecutionEngine,
		strings.Join(p.engines(), ", "))}
}

// Preview returns the objects of the first attempt of a run of d, which was read from
// text, and the registry answers that the objects depend on. The run has code sent
// along if d asks for it or withCode is set. The error is for the user.
func (p Planner) Preview(
	ctx context.Context, d *descriptors.Descriptor, text []byte, withCode bool,
) (transpile.Workload, []cluster.Image, error) {
	if err := p.checkEngine(d); err != nil {
		return transpile.Workload{}, nil, err
	}
	on := p.On(d.Info.ExecutionEngine)
	images, err := on.AskRegistries(ctx, d)
	if err != nil {
		return transpile.Workload{}, nil, err
	}
	w, err := transpile.Preview(d, text, withCode, on.Pods, images...)
	return w, images, err
}

// Render returns the objects of Preview as YAML, without asking a registry.
func (p Planner) Render(d *descriptors.Descriptor, text []byte, withCode bool) ([]byte, error) {
	return transpile.Manifest(d, text, withCode, p.On(d.Info.ExecutionEngine).Pods)
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
