package descriptors

import (
	"cmp"
	"maps"
	"slices"
)

// PodRoles are the roles of the pods of a run: those of the file, or those that its strategy
// stands for, of which the first is that of the pods that measure. Of the roles of a strategy
// only names, numbers and order are given.
func (d *Descriptor) PodRoles() []Role {
	ends := true
	switch d.Hardware.Strategy {
	case MPI:
		return []Role{
			{Name: "worker", Replicas: d.Hardware.Distributed.NumInstances},
			{Name: "launcher", Replicas: 1, StartsAfter: []string{"worker"}, EndsRun: &ends},
		}
	case Inference:
		return []Role{{Name: "client", Replicas: 1, StartsAfter: []string{"server"}, EndsRun: &ends}, {Name: "server", Replicas: 1}}
	case OwnRoles:
		return d.Roles
	case SingleNode, FromManifest:
	}
	return []Role{{Name: "benchmark", Replicas: 1, EndsRun: &ends}}
}

// RoleNames are the names of the roles of the pods of a run.
func (d *Descriptor) RoleNames() []string {
	all := d.PodRoles()
	names := make([]string, 0, len(all))
	for _, r := range all {
		names = append(names, r.Name)
	}
	return names
}

// Pods is the number of pods of a run.
func (d *Descriptor) Pods() int {
	n := 0
	for _, r := range d.PodRoles() {
		n += r.Replicas
	}
	return n
}

// Readers are the roles of the pods that have a source's data.
func (d *Descriptor) Readers(of Source) []string {
	if of.Role == "" && d.Hardware.Strategy == OwnRoles {
		return d.RoleNames()
	}
	return []string{cmp.Or(of.Role, d.RoleNames()[0])}
}

// Ending are the names of the roles whose end the end of the run waits for: those that say so,
// or else the last one, unless it says that it does not.
func (d *Descriptor) Ending() []string {
	var names []string
	all := d.PodRoles()
	for _, r := range all {
		if r.EndsRun != nil && *r.EndsRun {
			names = append(names, r.Name)
		}
	}
	if n := len(all); len(names) == 0 && n > 0 && all[n-1].EndsRun == nil {
		names = append(names, all[n-1].Name)
	}
	return names
}

// ForRole returns the descriptor of strategy single_node whose pod is a pod of r: d with the
// image, the command, the variables, the resources and the parsers of r.
func (d *Descriptor) ForRole(r Role) *Descriptor {
	one := *d
	one.Env.DockerImage = cmp.Or(r.DockerImage, d.Env.DockerImage)
	one.Env.Vars, one.Env.VarOrder = r.varsOver(d.Env)
	one.ML = r.programOver(d.ML)
	one.Hardware.CPUs, one.Hardware.Memory = cmp.Or(r.CPUs, d.Hardware.CPUs), cmp.Or(r.Memory, d.Hardware.Memory)
	if r.GPUs != nil {
		one.Hardware.GPUs = r.GPUs
	}
	if d.Output != nil && len(d.Output.Parsers) > 0 {
		out := *d.Output
		out.Parsers = d.parsersOf(r)
		one.Output = &out
	}
	return &one
}

// parsersOf are the parsers of the output of a role's pods.
func (d *Descriptor) parsersOf(r Role) []Parser {
	var all []Parser
	for _, p := range d.Output.Parsers {
		if p.Role == r.Name || p.Role == "" && slices.Contains(d.Ending(), r.Name) {
			all = append(all, p)
		}
	}
	return all
}

// varsOver are the variables of an environment with those of r, which come last.
func (r Role) varsOver(e Env) (vars map[string]string, order []string) {
	if len(r.Vars) == 0 {
		return e.Vars, e.VarOrder
	}
	vars = maps.Clone(r.Vars)
	for name, value := range e.Vars {
		if _, own := r.Vars[name]; !own {
			vars[name] = value
		}
	}
	order = slices.DeleteFunc(slices.Clone(e.VarOrder), func(name string) bool { _, own := r.Vars[name]; return own })
	return vars, append(order, r.VarOrder...)
}

// programOver is the program of r where ml is that of the file.
func (r Role) programOver(ml *ML) *ML {
	if r.BenchmarkCode == "" && r.Args == "" {
		return ml
	}
	var own ML
	if ml != nil {
		own = *ml
	}
	own.Args = r.Args
	if r.BenchmarkCode != "" {
		own.BenchmarkCode = r.BenchmarkCode
	}
	return &own
}
