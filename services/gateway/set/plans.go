package set

import (
	"context"
	"fmt"
	"sync"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/suite"
	"github.com/benchmark-ai/bai/descriptors/sweep"
	"github.com/benchmark-ai/bai/services/analyst/judge"
)

// maxPlans is the number of plans that a process keeps in memory.
const maxPlans = 16

// loaded is the request of a set, with its plan.
type loaded struct {
	request request
	plan    *sweep.Plan
	invalid string // reason why the request has no plan; empty if it has one

	stopping *judge.Stopping // nil if each cell has all repetitions
	selected []int           // runs of the plan that the set makes, in order; nil: all
}

// run returns a run of the set.
func (l loaded) run(ordinal int) sweep.Run {
	if l.selected != nil {
		ordinal = l.selected[ordinal]
	}
	return l.plan.Run(ordinal)
}

// runs returns the number of runs of the set.
func (l loaded) runs() int {
	if l.selected != nil {
		return len(l.selected)
	}
	return l.plan.Runs()
}

// planCache has the plans of sets that were used last. Several goroutines may use it.
type planCache struct {
	docs   documents
	parser parser.Parser

	mu    sync.Mutex
	plans map[string]loaded // by set
	order []string          // sets whose plans are kept, the oldest first
}

func newPlanCache(d documents, p parser.Parser) *planCache {
	return &planCache{docs: d, parser: p, plans: make(map[string]loaded)}
}

// get returns the request of a set with its plan. A descriptor that was accepted once may
// have no plan by the current rules, or another one.
func (c *planCache) get(ctx context.Context, s Set) (loaded, error) {
	c.mu.Lock()
	l, ok := c.plans[s.ID]
	c.mu.Unlock()
	if ok {
		return l, nil
	}
	r, err := c.docs.request(ctx, s)
	if err != nil {
		return loaded{}, err
	}
	plan, faults := suite.ReadPlan(acceptedParser(c.parser, r.Namespace), r.File, []byte(r.Descriptor))
	l = loaded{request: r, plan: plan, selected: bitsOf(r.Selected)}
	switch {
	case plan == nil:
		l.invalid = (&parser.InvalidError{Faults: faults.Errors()}).Error()
	case s.StopWhen != nil:
		if l.stopping, err = s.StopWhen.rule(); err != nil {
			l.invalid = err.Error()
		}
	}
	switch {
	case l.invalid != "":
	case l.runs() != s.Runs || plan.Cells() != s.Cells:
		l.invalid = fmt.Sprintf("the sweep has %d runs of %d cells by the rules of this release, and had %d of %d when the set was submitted", l.runs(), plan.Cells(), s.Runs, s.Cells)
	}
	c.add(s.ID, l)
	return l, nil
}

// acceptedParser returns the parser for a descriptor that submit has accepted: it does not
// check every cell again, nor by settings that have changed since.
func acceptedParser(p parser.Parser, namespace string) parser.Parser {
	p = p.In(namespace)
	p.Accepted = true
	return p
}

func (c *planCache) add(id string, l loaded) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.plans[id]; !ok {
		c.order = append(c.order, id)
	}
	c.plans[id] = l
	if len(c.order) > maxPlans {
		delete(c.plans, c.order[0])
		c.order = c.order[1:]
	}
}
