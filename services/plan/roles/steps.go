package roles

import (
	"slices"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/refusal"
)

// Paths of scripts in the containers that run them.
const (
	ScriptDir  = pod.Dir + "/script"
	ScriptFile = "benchmark" // of the benchmark
)

// Step is a container that runs before the benchmark, after it, or at the end of the pod.
type Step struct {
	descriptors.Step

	Env     descriptors.Env
	Command []string
	Script  string // text of the script that Command runs; empty for none
}

// Container returns the name of a step's container, and of its files.
func (s Step) Container() string { return pod.ContainerStep + s.Name }

// addSteps adds the steps of a descriptor, in the order in which they run.
func (r *Role) addSteps(d *descriptors.Descriptor) error {
	for _, s := range slices.Concat(d.StepsOf(descriptors.Before), d.StepsOf(descriptors.After), d.StepsOf(descriptors.Always)) {
		one := d.ForStep(s)
		argv, args, err := one.Command()
		if err != nil {
			return refusal.Descriptor("the command cannot be read: %v", err)
		}
		made := Step{Step: s, Env: one.Env, Command: argv}
		if _, text, ok := one.Script(); ok {
			made.Command, made.Script = slices.Concat(argv, []string{ScriptDir + "/" + made.Container()}, args), text
		}
		made.Command = useKubernetesVariables(made.Command, r.Vars)
		r.Steps = append(r.Steps, made)
	}
	return nil
}

// Scripts returns the texts of the role's scripts, by the names of their files.
func (r Role) Scripts() map[string]string {
	var all map[string]string
	add := func(name, text string) {
		if text == "" {
			return
		}
		if all == nil {
			all = map[string]string{}
		}
		all[name] = text
	}
	add(ScriptFile, r.Script)
	for _, s := range r.Steps {
		add(s.Container(), s.Script)
	}
	for i, text := range r.ParserScripts {
		add(parserFile(i), text)
	}
	return all
}

// StepNames returns the names of the steps in the order in which they run.
func (r Role) StepNames() []string {
	var names []string
	for _, s := range r.Steps {
		names = append(names, s.Name)
	}
	return names
}

// HasStep reports whether a step runs at a time.
func (r Role) HasStep(when descriptors.When) bool {
	return slices.ContainsFunc(r.Steps, func(s Step) bool { return s.When == when })
}

// LastStep returns the name of the last step after the benchmark, or of the last one that
// runs always; empty if there is neither.
func (r Role) LastStep() string {
	if n := len(r.Steps); n > 0 && r.Steps[n-1].When != descriptors.Before {
		return r.Steps[n-1].Name
	}
	return ""
}

// AlwaysTime returns how long the steps may take that run always.
func (r Role) AlwaysTime() time.Duration {
	var all time.Duration
	for _, s := range r.Steps {
		if s.When == descriptors.Always {
			all += s.Deadline
		}
	}
	return all
}
