package perftest

import (
	"slices"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/document"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/draft"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/kube"
)

// values are the options of one benchmark, or of all benchmarks of a set.
type values struct {
	options []option
	spec    document.Value
	varied  []string       // the options that differ between the benchmarks of a set
	read    map[string]any // the value of each option that has one

	// rdma says that the kind uses RDMA, and needsDevice that the descriptor has to have a device of it.
	rdma, needsDevice bool
}

// newValues reads a spec.
func newValues(options []option, spec document.Value, varied []string) *values {
	v := &values{options: options, spec: spec, varied: varied, read: map[string]any{}}
	for _, o := range options {
		switch at := spec.Get(o.name); {
		case at.Has():
			v.read[o.name] = o.read(at)
		case o.standard != nil:
			v.read[o.name] = o.standard
		case o.required && !slices.Contains(varied, o.name):
			spec.Fault("add it", "has no %s", o.name)
		}
	}
	v.needsDevice = usesRDMA(v.certain)
	return v
}

// usesRDMA reports whether a benchmark with some values of options uses RDMA by MPI.
func usesRDMA(value func(string) any) bool {
	return value("transport") == "RDMA" && unfit("transport", value) == ""
}

// text returns the value of an option in the texts of the descriptor.
func (v *values) text(name string) string {
	if o, ok := find(v.options, name); ok && slices.Contains(v.varied, name) {
		return draft.Parameter(o.parameter())
	}
	return show(v.read[name])
}

// number returns the value of an option with whole numbers; of several, it is that of the template.
func (v *values) number(name string) int64 {
	n, _ := v.read[name].(int64)
	return n
}

// varies reports whether an option differs between the benchmarks of a set.
func (v *values) varies(name string) bool { return slices.Contains(v.varied, name) }

// certain returns the value that an option has in all benchmarks; nil if there is none.
func (v *values) certain(name string) any {
	if v.varies(name) {
		return nil
	}
	return v.read[name]
}

// unused says why an option is not carried over for any benchmark; it is empty if it is for some.
func (v *values) unused(o option) string {
	if o.dropped != "" {
		return o.dropped
	}
	return unfit(o.name, v.certain)
}

// apply writes the options that set keys, but for those of a structure that the kind writes itself.
func (v *values) apply(d *draft.Draft) {
	for _, o := range v.options {
		value, ok := v.read[o.name]
		at, why := v.spec.Get(o.name), v.unused(o)
		switch {
		case !ok || v.varies(o.name) || o.written || o.settings == nil && why == "":
		case why != "":
			if at.Has() {
				at.Remark("%s", why)
			}
		case o.name == "hostNetwork" && value == false, o.name == "sshPort" && value == int64(standardSSHPort):
			// as the descriptor without it
		default:
			kube.Apply(d, v.settings(o, value)...)
		}
	}
}

// settings returns the keys that a value of an option sets.
func (v *values) settings(o option, value any) []kube.Setting {
	all := o.settings(value)
	if o.name == "resources" && (v.rdma || v.needsDevice) {
		return kube.WithRDMA(all)
	}
	return all
}

// unfit says why a benchmark cannot have an option beside the values of others; it is empty if it can.
func unfit(name string, value func(string) any) string {
	switch name {
	case "networkName", "mtu":
		if value("hostNetwork") == true {
			return "pods with hostNetwork have no network of their own: left out"
		}
	case "transport", "sshPort":
		if value("numNodes") == int64(1) {
			return "one node has no connections of MPI: left out"
		}
	}
	return ""
}

// hasGPUs reports whether the resources have GPUs, or differ between the benchmarks of a set.
func (v *values) hasGPUs() bool {
	all, _ := v.read["resources"].([]kube.Setting)
	return v.varies("resources") || v.varies("device") ||
		slices.ContainsFunc(all, func(s kube.Setting) bool { return s.Key == "hardware.gpus" })
}

// find returns the option of a name.
func find(options []option, name string) (option, bool) {
	i := slices.IndexFunc(options, func(o option) bool { return o.name == name })
	if i < 0 {
		return option{}, false
	}
	return options[i], true
}
