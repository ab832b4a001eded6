// Package preflight says before a run whether it would find here what it needs:
// it holds the objects that the run would be, and its data, against what the
// cluster and the platform's settings have.
//
// It looks at what there is, not at what is free: a cluster that is full today
// is one where a run waits. Nothing is created or changed.
package preflight

import (
	"context"
	"slices"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// Settings are what an operator says about who does what. The zero value is that
// of one process that does everything.
type Settings struct {
	Executor string `toml:"executor"` // user name of the account that the executor has in the cluster, as system:serviceaccount:NAMESPACE:NAME; empty means the gateway's own
	Watcher  string `toml:"watcher"`  // that of the watcher
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

// Grade says how something stands.
type Grade int

// Grades.
const (
	Fine Grade = iota
	Warning
	Fault
)

// Check is one thing that a run needs, and whether it is there.
type Check struct {
	Topic   string
	Subject string // which one; empty where the topic has one thing
	Grade   Grade
	Message string
	Remedy  string      // empty where nothing has to be done
	Class   event.Class // of a fault: whose it is
}

// Planner makes the objects of runs without creating them.
type Planner interface {
	// Preview returns the objects of a run of d, which was read from text, with the
	// answers of registries that they were made from. The run has code sent along
	// where d asks for it, or withCode does. The error is for the user.
	Preview(ctx context.Context, d *descriptors.Descriptor, text []byte, withCode bool) (transpile.Workload, []cluster.Image, error)
}

// Sources says where data may be read from.
type Sources interface {
	// Check says what can be said against a source without asking it, nil where
	// it may be tried.
	Check(source string) error
}

// Deps are what a Checker needs from others.
type Deps struct {
	Planner Planner
	Cluster cluster.Surveyor
	Sources Sources // nil: nothing is said of data
}

// Checker holds descriptors against what there is.
type Checker struct {
	settings Settings
	deps     Deps
}

// New returns a Checker.
func New(s Settings, d Deps) *Checker { return &Checker{settings: s, deps: d} }

// Check says of everything that a run of d, which was read from text, would need
// whether it is there. Code is sent along where d asks for it, or withCode does;
// the programs in it are taken to be there. A cluster that cannot be asked is a fault among others.
func (c *Checker) Check(ctx context.Context, d *descriptors.Descriptor, text []byte, withCode bool) []Check {
	n := c.requirements(ctx, d, text, withCode)
	if n.PlanError != "" {
		return decide(n, cluster.Survey{})
	}
	s, err := c.deps.Cluster.Survey(ctx, NewInquiry(n, c.settings))
	if err != nil {
		n.ClusterError = err.Error()
	}
	return decide(n, s)
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
