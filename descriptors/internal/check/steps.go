package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/suggest"
)

// mostSteps is how many steps a run can have.
const mostSteps = 32

// steps checks the table steps.
func (c rules) steps() {
	if len(c.d.Steps) == 0 {
		return
	}
	names := make([]string, 0, len(c.d.Steps))
	for _, s := range c.d.Steps {
		names = append(names, s.Name)
	}
	for i, s := range c.d.Steps {
		at := fmt.Sprintf("steps[%d]", i)
		if n := slices.Index(names, s.Name); n < i && s.Name != "" {
			c.r.Fault(at+".name", fault.SameStep, fmt.Sprintf("%q is the name of steps[%d] too", s.Name, n), "choose another name")
		}
		c.roleVars(at, s.Vars)
		c.needs(i, names)
	}
	c.stepCircle(names)
	c.stepPods()
}

// stepPods finds steps of runs that cannot have them.
func (c rules) stepPods() {
	if len(c.d.Steps) > mostSteps {
		c.r.Fault("steps", fault.TooManySteps, fmt.Sprintf("are %d; a run has %d at most", len(c.d.Steps), mostSteps), "")
	}
	if c.damaged || c.r.HasErrorBelow("hardware") || c.r.HasErrorBelow("roles") || c.r.HasErrorBelow("ml") {
		return
	}
	n := c.d.Pods()
	if i := c.firstStep(descriptors.Before, descriptors.After); n > 1 && i >= 0 {
		c.r.Fault(fmt.Sprintf("steps[%d].when", i), fault.StepsAndPods,
			fmt.Sprintf("a step %s the benchmark needs a run of one pod, and %s has %d pods",
				c.d.Steps[i].When, c.strategy(), n), `only steps with when = "always" can be had with several`)
		return
	}
	i, ending := c.firstStep(descriptors.After, descriptors.Always), c.d.Ending()
	if i < 0 || len(ending) == 0 {
		return
	}
	one := c.d
	for _, r := range c.d.Roles {
		if r.Name != ending[len(ending)-1] {
			continue
		}
		one = c.d.ForRole(r)
		if r.Replicas > 1 {
			c.r.Fault(fmt.Sprintf("steps[%d].when", i), fault.StepsAndPods,
				fmt.Sprintf("the step runs in the pod of role %s, at whose end the run ends, and that role has %d pods",
					r.Name, r.Replicas), "give that role one pod, or let a further role with one pod end the run")
			return
		}
	}
	if argv, _, err := one.Command(); err == nil && len(argv) == 0 {
		c.r.Fault(fmt.Sprintf("steps[%d].when", i), fault.NoCommand,
			"nothing watches the entrypoint of an image, so that nothing tells when it has ended",
			"add benchmark_code to [ml]")
	}
}

// firstStep returns the number of the first step that runs at one of some times, or -1.
func (c rules) firstStep(when ...descriptors.When) int {
	return slices.IndexFunc(c.d.Steps, func(s descriptors.Step) bool { return slices.Contains(when, s.When) })
}

// needs finds needed steps that are not there, or that run too late.
func (c rules) needs(n int, names []string) {
	step := c.d.Steps[n]
	for i, name := range step.Needs {
		at := fmt.Sprintf("steps[%d].needs[%d]", n, i)
		other := slices.Index(names, name)
		switch {
		case other >= 0 && step.When == descriptors.Before && c.d.Steps[other].When == descriptors.After:
			c.r.Fault(at, fault.StepOrder, fmt.Sprintf("step %s runs after the benchmark", name),
				`write when = "after" for this step too, or leave the name out`)
		case other >= 0 && name != "" && (step.When == descriptors.Always) != (c.d.Steps[other].When == descriptors.Always):
			c.r.Fault(at, fault.StepOrder, alwaysOrder(step, name), `write the same when for both steps, or leave the name out`)
		case other >= 0 || c.damaged || name == "":
		default:
			remedy := "the steps are " + strings.Join(names, ", ")
			if suggestion := suggest.Find(name, names); suggestion != "" {
				remedy = fmt.Sprintf("did you mean %q?", suggestion)
			}
			c.r.Fault(at, fault.UnknownStep, fmt.Sprintf("there is no step %q", name), remedy)
		}
	}
}

// alwaysOrder says why a step cannot need another one, if one of the two runs always.
func alwaysOrder(step descriptors.Step, needed string) string {
	if step.When == descriptors.Always {
		return fmt.Sprintf("a step that runs always runs whether or not step %s has succeeded", needed)
	}
	return fmt.Sprintf("step %s runs at the end of the attempt, after this step", needed)
}

// stepCircle finds the first steps of the file that need each other.
func (c rules) stepCircle(names []string) {
	needs := func(step int) []string { return c.d.Steps[step].Needs }
	for i := range c.d.Steps {
		path := pathBack(i, i, names, needs, map[int]bool{})
		if path == nil {
			continue
		}
		var words []string
		for n, step := range path {
			words = append(words, fmt.Sprintf("%s needs %s", names[step], names[path[(n+1)%len(path)]]))
		}
		next := slices.Index(needs(i), names[path[1%len(path)]])
		c.r.Fault(fmt.Sprintf("steps[%d].needs[%d]", i, next), fault.StepCircle, strings.Join(words, ", "), "leave one of them out")
		return
	}
}
