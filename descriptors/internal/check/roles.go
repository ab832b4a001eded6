package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/suggest"
)

// How many roles, and pods of all of them, a run can have: each pod is given the names of all.
const (
	mostRoles = 32
	mostPods  = 1000
)

// roles checks the table roles.
func (c rules) roles() {
	if len(c.d.Roles) == 0 {
		return
	}
	if c.r.Has("hardware.strategy") {
		c.r.Fault("hardware.strategy", fault.StrategyAndRoles, "this file has [[roles]]", "keep one of the two")
	}
	names := c.d.RoleNames()
	for i, r := range c.d.Roles {
		at := fmt.Sprintf("roles[%d]", i)
		if n := slices.Index(names, r.Name); n < i && r.Name != "" {
			c.r.Fault(at+".name", fault.SameRole, fmt.Sprintf("%q is the name of roles[%d] too", r.Name, n),
				"choose another name, or write replicas")
		}
		c.roleVars(at, r.Vars)
		c.ready(at+".ready", r)
		c.startsAfter(i, names)
	}
	c.pods()
	c.circle()
	if n := len(names) - 1; len(c.d.Ending()) == 0 {
		c.r.Fault(fmt.Sprintf("roles[%d].ends_run", n), fault.NoEnd, "no role ends the run",
			"write ends_run = true for one of them, or leave the key out")
	}
}

// pods checks the numbers of pods.
func (c rules) pods() {
	pods, valid := 0, true
	for i, r := range c.d.Roles {
		at := fmt.Sprintf("roles[%d].replicas", i)
		if !c.r.HasError(at) && (r.Replicas < 1 || r.Replicas > mostPods) {
			c.r.Fault(at, fault.Replicas, fmt.Sprintf("is %d; a role has 1 to %d pods", r.Replicas, mostPods), "")
		}
		pods, valid = pods+r.Replicas, valid && !c.r.HasError(at)
	}
	switch {
	case len(c.d.Roles) > mostRoles:
		c.r.Fault("roles", fault.Replicas, fmt.Sprintf("are %d, %d at most run together", len(c.d.Roles), mostRoles), "")
	case pods > mostPods && valid:
		c.r.Fault("roles", fault.Replicas, fmt.Sprintf("have %d pods, %d at most run together", pods, mostPods), "")
	}
}

// roleVars checks the variables of the role at a path.
func (c rules) roleVars(at string, vars map[string]string) {
	c.env(at, descriptors.Env{Vars: vars})
	for name := range vars {
		if _, ok := c.d.Env.Secrets[name]; ok {
			c.r.Fault(at+".vars."+decode.Quoted(name), fault.DuplicateVariable, "is a variable of env.secrets too", "keep one of the two")
		}
	}
}

// ready finds a check that is none, or several.
func (c rules) ready(at string, r descriptors.Role) {
	if r.Ready == nil || c.r.HasError(at) {
		return
	}
	given := c.given(at, "port", "http", "file", "log")
	switch {
	case len(given) == 0 && !c.damaged && !c.r.HasErrorBelow(at):
		c.r.Fault(at, fault.ReadyKind, "does not say when a pod is ready", "add one of port, http, file and log")
	case len(given) > 1:
		c.r.Fault(at+"."+given[1], fault.ReadyKind, "a pod is ready by its "+given[0]+" already", "keep one of the two")
	case len(given) == 1 && (r.Ready.File != "" || r.Ready.Log != "") && !c.damaged && !c.r.HasError("ml") && !c.r.HasErrorBelow("ml"):
		if argv, _, err := c.d.ForRole(r).Command(); err == nil && len(argv) == 0 {
			c.r.Fault(at+"."+given[0], fault.NoCommand, "nothing watches the entrypoint of an image",
				"add benchmark_code to the role, or write port or http")
		}
	}
}

// startsAfter finds roles to wait for that are not there, or that are never ready.
func (c rules) startsAfter(n int, names []string) {
	for i, name := range c.d.Roles[n].StartsAfter {
		at := fmt.Sprintf("roles[%d].starts_after[%d]", n, i)
		other := slices.Index(names, name)
		switch {
		case other >= 0 && other != n && name != "" && c.d.Roles[other].Ready == nil &&
			!c.r.HasError(fmt.Sprintf("roles[%d].ready", other)) && !c.damaged:
			c.r.Fault(at, fault.NeverReady, fmt.Sprintf("role %s has no ready, so that nothing says when it is", name),
				fmt.Sprintf("add ready to role %s, as ready = { port = 5201 }", name))
		case other >= 0 || c.damaged || name == "":
		default:
			remedy := "the roles are " + strings.Join(names, ", ")
			if suggestion := suggest.Find(name, names); suggestion != "" {
				remedy = fmt.Sprintf("did you mean %q?", suggestion)
			}
			c.r.Fault(at, fault.UnknownRole, fmt.Sprintf("there is no role %q", name), remedy)
		}
	}
}

// circle finds the first roles of the file that wait for each other.
func (c rules) circle() {
	names := c.d.RoleNames()
	after := func(role int) []string { return c.d.Roles[role].StartsAfter }
	for i := range c.d.Roles {
		path := pathBack(i, i, names, after, map[int]bool{})
		if path == nil {
			continue
		}
		var waits []string
		for n, role := range path {
			waits = append(waits, fmt.Sprintf("%s waits for %s", names[role], names[path[(n+1)%len(path)]]))
		}
		next := slices.Index(after(i), names[path[1%len(path)]])
		c.r.Fault(fmt.Sprintf("roles[%d].starts_after[%d]", i, next), fault.RoleCircle, strings.Join(waits, ", "), "leave one of them out")
		return
	}
}

// pathBack returns the things that each name the next one among those that they come after,
// from one thing to one that names the goal; nil if there are none.
func pathBack(from, goal int, names []string, after func(int) []string, seen map[int]bool) []int {
	seen[from] = true
	for _, name := range after(from) {
		next := slices.Index(names, name)
		if next == goal && name != "" {
			return []int{from}
		}
		if next < 0 || seen[next] || name == "" {
			continue
		}
		if rest := pathBack(next, goal, names, after, seen); rest != nil {
			return append([]int{from}, rest...)
		}
	}
	return nil
}
