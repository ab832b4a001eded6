package set

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/suite"
	"github.com/benchmark-ai/bai/descriptors/sweep"
	"github.com/benchmark-ai/bai/services/analyst/judge"
)

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

// planCache has the plans of the sets that were used last, up to maxPlanBytes. Several goroutines may use it.
type planCache struct {
	docs   documents
	parser parser.Parser

	mu    sync.Mutex
	plans map[string]loaded // by set
	used  []string          // sets with a plan, the one that was used last at the end
	bytes int               // estimated size of all plans
}

func newPlanCache(d documents, p parser.Parser) *planCache {
	return &planCache{docs: d, parser: p, plans: make(map[string]loaded)}
}

// get returns the request of a set with its plan. A descriptor that was accepted once may
// have no plan by the current rules, or another one.
func (c *planCache) get(ctx context.Context, s Set) (loaded, error) {
	if l, ok := c.find(s.ID); ok {
		return l, nil
	}
	r, err := c.docs.request(ctx, s)
	if err != nil {
		return loaded{}, err
	}
	plan, faults := suite.ReadPlan(acceptedParser(c.parser, r.Namespace), r.File, []byte(r.Descriptor))
	l := loaded{request: r, plan: plan, selected: bitsOf(r.Selected)}
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

// find returns the plan of a set, if it is in memory.
func (c *planCache) find(id string) (loaded, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.plans[id]
	if ok {
		c.touch(id)
	}
	return l, ok
}

// touch makes a set the one that was used last. The caller holds the lock.
func (c *planCache) touch(id string) {
	c.used = append(slices.DeleteFunc(c.used, func(other string) bool { return other == id }), id)
}

// add keeps the plan of a set, and drops those that were not used for the longest time beyond maxPlanBytes.
func (c *planCache) add(id string, l loaded) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.plans[id]; !ok {
		c.plans[id], c.bytes = l, c.bytes+l.bytes()
	}
	c.touch(id)
	for c.bytes > maxPlanBytes && len(c.used) > 1 {
		c.bytes -= c.plans[c.used[0]].bytes()
		delete(c.plans, c.used[0])
		c.used = c.used[1:]
	}
}
