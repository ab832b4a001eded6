package descriptors

import "slices"

// StepsOf returns the steps that run at a time, in the order in which they run: that of the
// file, but each behind those that it needs. The parser refuses steps that need each other; here
// they are missing.
func (d *Descriptor) StepsOf(when When) []Step {
	var ordered []Step
	done := func(name string) bool {
		other := slices.IndexFunc(d.Steps, func(s Step) bool { return s.Name == name })
		return other >= 0 && d.Steps[other].When != when || slices.ContainsFunc(ordered, func(s Step) bool { return s.Name == name })
	}
	left := slices.DeleteFunc(slices.Clone(d.Steps), func(s Step) bool { return s.When != when })
	for {
		next := slices.IndexFunc(left, func(s Step) bool {
			return !slices.ContainsFunc(s.Needs, func(name string) bool { return !done(name) })
		})
		if next < 0 {
			return ordered
		}
		ordered, left = append(ordered, left[next]), slices.Delete(left, next, next+1)
	}
}

// ForStep returns the descriptor of strategy single_node whose benchmark is the step s: d
// with the image, the command and the variables of s.
func (d *Descriptor) ForStep(s Step) *Descriptor {
	return d.ForRole(Role{DockerImage: s.Image, BenchmarkCode: s.Command, Vars: s.Vars, VarOrder: s.VarOrder})
}
