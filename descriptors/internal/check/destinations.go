package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
)

// destinations checks the destinations of the run.
func (c rules) destinations() {
	if s := c.d.Server; s != nil && c.r.Has("server.output.destinations") {
		c.r.Warn("server.output.destinations", fault.NotRead, "a run has the destinations of the table output",
			"move them to [[output.destinations]]")
	}
	if c.d.Output == nil {
		return
	}
	first := map[string]int{}
	for i, d := range c.d.Output.Destinations {
		at := fmt.Sprintf("output.destinations[%d]", i)
		if j, twice := first[d.Name]; twice && d.Name != "" {
			c.r.Fault(at+".name", fault.SameDestination, fmt.Sprintf("%q is the name of output.destinations[%d] too", d.Name, j),
				"name each destination once")
			continue
		}
		first[d.Name] = i
		c.destination(at, d)
		c.columns(at+".columns", d)
	}
}

// destination finds one that the platform does not have for the descriptor's namespace.
func (c rules) destination(at string, d descriptors.Destination) {
	if c.platform.Destinations == nil || c.platform.Accepted || !c.r.IsValid(at+".name") {
		return
	}
	usable, namespace := c.platform.usable(c.platform.Destinations)
	if slices.Contains(usable, d.Name) {
		return
	}
	remedy := "leave it out: the settings have no destination for this namespace"
	if len(usable) > 0 {
		remedy = "use one of " + strings.Join(usable, ", ")
	}
	c.r.Fault(at+".name", fault.NoDestination, fmt.Sprintf("this platform has no destination %q for the namespace %q", d.Name, namespace),
		remedy)
}

// usable returns those of all, which have the namespaces whose descriptors may name each, that
// the descriptor's namespace may name, in order.
func (p Platform) usable(all map[string][]string) (names []string, namespace string) {
	namespace = cmp.Or(p.Namespace, "default")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if in := all[name]; len(in) == 0 || slices.Contains(in, namespace) {
			names = append(names, name)
		}
	}
	return names, namespace
}

// columns checks the values of columns.
func (c rules) columns(at string, d descriptors.Destination) {
	if !c.r.IsValid(at) {
		return
	}
	used := map[descriptors.ColumnSource]bool{}
	for _, name := range slices.Sorted(maps.Keys(d.Columns)) {
		v, ok := descriptors.ParseColumnValue(d.Columns[name])
		path := at + "." + decode.Quoted(name)
		if !ok {
			c.r.Fault(path, fault.NoColumnValue, fmt.Sprintf("%q is not a value of a row", d.Columns[name]),
				"write run.FIELD, label.KEY, summary.FIELD, metric.NAME.FIELD or sample.FIELD")
			continue
		}
		used[v.From] = true
		samples := d.Rows == descriptors.SampleRows
		switch {
		case v.From == descriptors.FromSample && !samples:
			c.r.Fault(path, fault.OtherRows, "summaries have no values of a sample",
				`write rows = "samples", or a value of summary or metric`)
		case (v.From == descriptors.FromSummary || v.From == descriptors.FromMetric) && samples:
			c.r.Fault(path, fault.OtherRows, fmt.Sprintf("samples have no values of a %s", v.From),
				`write rows = "summaries", or a value of sample`)
		case used[descriptors.FromSummary] && used[descriptors.FromMetric]:
			c.r.Fault(path, fault.OtherRows, "a row is either one summary or the whole run",
				"use values of summary alone, or of metric alone")
			return
		}
	}
}
