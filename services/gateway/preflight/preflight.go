// Package preflight checks before a run whether the cluster has everything that the run
// needs. It compares the objects and data of the run with the cluster and the
// platform's settings.
//
// It checks capacity, not what is free now: in a full cluster a run waits. It creates
// and changes nothing.
package preflight

import (
	"context"
	"slices"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// Settings are the accounts of the other services in the cluster. The zero value is
// for one process that runs all services.
type Settings struct {
	// Executor is the user name of the executor's account in the cluster, as
	// system:serviceaccount:NAMESPACE:NAME; empty means the gateway's own.
	Executor string `toml:"executor"`
	Watcher  string `toml:"watcher"` // user name of the watcher's account
}

// Topics of checks.
const (
	TopicPlan        = "plan"
	TopicLimits      = "limits"
	TopicCluster     = "cluster"
	TopicPermissions = "permissions"
	TopicKinds       = "kinds"
	TopicNodes       = "nodes"
	TopicQuota       = "quota"
	TopicStorage     = "storage"
	TopicSecrets     = "secrets"
	TopicImages      = "images"
	TopicPrograms    = "programs"
	TopicData        = "data"
)

// Grade is the result of a check.
type Grade int

// Grades of checks.
const (
	Fine Grade = iota
	Warning
	Fault
)

// Check is the result for one thing that a run needs.
type Check struct {
	Topic   string
	Subject string // name of the thing; empty if the topic has only one
	Grade   Grade
	Message string
	Remedy  string      // empty if there is nothing to do
	Class   event.Class // failure class of a fault
}

// Planner makes the objects of runs without creating them.
type Planner interface {
	// Preview returns the objects of a run of d, which was read from text, and the
	// registry answers that they depend on. The run has code sent along if d asks for
	// it or withCode is set. The error is for the user.
	Preview(ctx context.Context, d *descriptors.Descriptor, text []byte, withCode bool) (transpile.Workload, []cluster.Image, error)
}

// Sources decides which sources the platform may read.
type Sources interface {
	// Check returns the reason why the platform may not read a source, or nil. It does
	// not contact the source.
	Check(source string) error
}

// Deps are the dependencies of a Checker.
type Deps struct {
	Planner Planner
	// EngineOf returns the name of the engine that a descriptor names, which is empty for the
	// default one. Nil means that there is no other.
	EngineOf func(d *descriptors.Descriptor) string

	Cluster cluster.Surveyor            // of the default engine
	Engines map[string]cluster.Surveyor // of the other engines, by name; one that is not there is not asked
	Sources Sources                     // nil: data are not checked
}

// Checker checks descriptors against the cluster and the settings.
type Checker struct {
	settings Settings
	deps     Deps
}

// New returns a Checker.
func New(s Settings, d Deps) *Checker { return &Checker{settings: s, deps: d} }

// Check returns a check of everything that a run of d needs; d was read from text. The
// run has code sent along if d asks for it or withCode is set, and the programs in that
// code are assumed to exist. If the cluster cannot be surveyed, one of the checks is a
// fault.
func (c *Checker) Check(ctx context.Context, d *descriptors.Descriptor, text []byte, withCode bool) []Check {
	n := c.requirements(ctx, d, text, withCode)
	if n.PlanError != "" {
		return decide(n, cluster.Survey{})
	}
	surveyor, engine := c.surveyor(d)
	if surveyor == nil {
		return decideUnasked(n, engine)
	}
	s, err := surveyor.Survey(ctx, NewInquiry(n, c.settings))
	if err != nil {
		n.ClusterError = err.Error()
	}
	return decide(n, s)
}

// surveyor returns who checks the cluster of the engine that a descriptor names, nil if this
// process cannot ask that cluster.
func (c *Checker) surveyor(d *descriptors.Descriptor) (surveyor cluster.Surveyor, engine string) { //nolint:ireturn // nil is none
	if c.deps.EngineOf != nil {
		engine = c.deps.EngineOf(d)
	}
	if engine == "" {
		return c.deps.Cluster, engine
	}
	return c.deps.Engines[engine], engine
}

func (c *Checker) requirements(ctx context.Context, d *descriptors.Descriptor, text []byte, withCode bool) Requirements {
	n := Requirements{Settings: c.settings}
	workload, images, err := c.deps.Planner.Preview(ctx, d, text, withCode)
	if err != nil {
		n.PlanError = err.Error()
	}
	n.Objects, n.Scope, n.Images = workload.Objects, workload.Scope, images
	if c.deps.Sources == nil {
		return n
	}
	given := d.Data.Sources
	if d.Server != nil {
		given = append(slices.Clip(given), d.Server.Models...)
	}
	for _, s := range given {
		datum := DataSource{Source: s.Src}
		if err := c.deps.Sources.Check(s.Src); err != nil {
			datum.DenyReason = err.Error()
		}
		n.Data = append(n.Data, datum)
	}
	return n
}
