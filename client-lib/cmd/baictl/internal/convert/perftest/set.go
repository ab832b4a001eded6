package perftest

import (
	"maps"
	"slices"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/document"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/draft"
)

// maxRepetitions is how many repetitions a cell of a sweep may have.
const maxRepetitions = 10_000

// A permutation has the values of the options that differ between the benchmarks of a set.
type permutation map[string]any

// value returns the value of an option; nil if it has none.
func (p permutation) value(name string) any { return p[name] }

// An axis is an option with the values that it takes.
type axis struct {
	option option
	values []any
}

// permutations are those of a set.
type permutations struct {
	kind     kind
	base     *values  // those of the template
	names    []string // the options of product
	product  document.Value
	explicit []document.Value
}

// convertSet converts a BenchmarkSet: each of its permutations is a cell.
func convertSet(d *draft.Draft, v document.Value) string {
	spec := table(v, "spec")
	template := table(spec, "template")
	template.Get("apiVersion")
	k, ok := kindOf(table(template, "kind"))
	if !ok {
		return ""
	}
	name := begin(d, k, v)
	at, product, explicit := template.Get("spec"), spec.Get("permutations", "product"), spec.Get("permutations", "explicit")
	p := permutations{kind: k, product: product, explicit: explicit.Items()}
	p.names = p.known(product)
	p.base = newValues(k.options, at, p.varied())
	axes, rows := p.axes(), p.rows()
	if more := p.dependent(axes, rows); len(more) > 0 {
		p.base.varied = slices.Sorted(slices.Values(append(more, p.base.varied...)))
		axes, rows = p.axes(), p.rows()
	}
	p.fill(axes, rows)
	p.base.needsDevice = p.base.needsDevice || p.someRDMA(axes, rows)
	k.finish(d, p.base)
	sweep := d.Sweep()
	if n := spec.Get("repetitions"); n.Has() {
		sweep.Set("repetitions", n.Int(1, maxRepetitions))
	}
	sweep.Set("max_parallel", 1)
	p.write(d, axes, rows, spec)
	return name
}

// varied returns the names of the options that differ between the benchmarks, in the order in
// which the API server stores them.
func (p permutations) varied() []string {
	names := slices.Clone(p.names)
	for _, row := range p.explicit {
		names = append(names, p.known(row)...)
	}
	if len(p.names) == 0 && len(p.explicit) == 0 {
		names = []string{p.kind.axis} // a sweep has an axis
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// dependent returns the options of the template that only some of the permutations can have.
func (p permutations) dependent(axes []axis, rows []permutation) []string {
	var names []string
	for _, o := range p.kind.options {
		if p.base.certain(o.name) != nil && p.base.unused(o) == "" && sometimesUnfit(o.name, axes, rows) {
			names = append(names, o.name)
		}
	}
	return names
}

// known returns the keys of a table that are options of the kind. There are remarks about others.
func (p permutations) known(v document.Value) []string {
	var names []string
	for _, name := range v.Keys() {
		if _, ok := find(p.kind.options, name); !ok {
			v.Get(name).Remark("kind %s has no such option: left out", p.kind.name)
			continue
		}
		names = append(names, name)
	}
	return names
}

// axes returns the options that the product of the permutations has, with their values. An
// option that only explicit names has that of the template there.
func (p permutations) axes() []axis {
	if len(p.names) == 0 && len(p.explicit) > 0 {
		return nil
	}
	var axes []axis
	for _, name := range p.base.varied {
		o, _ := find(p.kind.options, name)
		if values := p.list(o); len(values) > 0 {
			axes = append(axes, axis{o, values})
		} else if o.required {
			p.base.spec.Fault("add it", "has no %s", name)
		}
	}
	return axes
}

// list returns the values that an option has in the product.
func (p permutations) list(o option) []any {
	list := p.product.Get(o.name)
	if !list.Has() {
		if value := p.value(o, list); value != nil {
			return []any{value}
		}
		return nil
	}
	if list.Kind() == document.List && len(list.Items()) == 0 {
		list.Fault("add a value, or leave it out", "is empty, so that there is no permutation")
	}
	var values []any
	for _, item := range list.Items() {
		if value := p.value(o, item); value != nil {
			values = append(values, value)
		}
	}
	return values
}

// rows returns the explicit permutations.
func (p permutations) rows() []permutation {
	rows := make([]permutation, 0, len(p.explicit))
	for _, row := range p.explicit {
		values := permutation{}
		for _, name := range p.base.varied {
			o, _ := find(p.kind.options, name)
			if value := p.value(o, row.Get(name)); value != nil {
				values[name] = value
			} else if o.required {
				row.Fault("add it, or add it to the template", "has no %s", name)
			}
		}
		rows = append(rows, values)
	}
	return rows
}

// value returns the value of an option in one permutation: that of the template if it has no
// other, and nil without one.
func (p permutations) value(o option, v document.Value) any {
	at := p.base.spec.Get(o.name)
	switch {
	case !v.Has():
		return p.base.read[o.name]
	case o.list && at.Has():
		return show(o.read(at)) + " " + show(o.read(v)) // lists are concatenated
	}
	merged := at.Merge(v)
	value := o.read(merged)
	merged.Unknown()
	return value
}

// someRDMA reports whether a permutation uses RDMA by MPI.
func (p permutations) someRDMA(axes []axis, rows []permutation) bool {
	uses := func(row permutation) bool {
		return usesRDMA(func(name string) any {
			if value, ok := row[name]; ok {
				return value
			}
			return p.base.certain(name)
		})
	}
	for _, a := range axes {
		for _, value := range a.values {
			if uses(permutation{a.option.name: value}) {
				return true
			}
		}
	}
	return slices.ContainsFunc(rows, uses)
}

// fill gives options that have no value in the template the first one that they have, for the
// tables that a descriptor has in any case.
func (p permutations) fill(axes []axis, rows []permutation) {
	first := permutation{}
	for _, row := range slices.Backward(rows) {
		maps.Copy(first, row)
	}
	for _, a := range axes {
		first[a.option.name] = a.values[0]
	}
	for name, value := range first {
		if _, ok := p.base.read[name]; !ok {
			p.base.read[name] = value
		}
	}
}
