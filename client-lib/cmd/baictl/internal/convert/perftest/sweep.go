package perftest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/document"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/draft"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/kube"
)

// maxRows is how many permutations are written one by one.
const maxRows = 1000

// write writes the axes and rows of the sweep. Where an option sets several keys of a
// descriptor, each permutation is a row.
func (p permutations) write(d *draft.Draft, axes []axis, rows []permutation, spec document.Value) {
	p.remarks()
	written := map[string]bool{}
	if keys := p.keys(axes); keys != nil {
		t := d.Table("sweep.product")
		for i, a := range axes {
			t.Set(keys[i], p.once(a))
		}
		p.remember(written, axes)
	} else {
		rows = append(p.multiply(axes, spec), rows...)
	}
	for _, row := range rows {
		pairs := p.pairs(row)
		id := identity(pairs)
		if written[id] {
			spec.Get("permutations").Remark("the cells of a sweep differ: a permutation that is there twice is left out (%s)", id)
			continue
		}
		written[id] = true
		t := d.Item("sweep.explicit")
		for _, one := range pairs {
			t.Set(one.Key, one.Value)
		}
	}
}

// remarks says which options that differ have no effect on the cells.
func (p permutations) remarks() {
	for _, name := range p.base.varied {
		o, _ := find(p.kind.options, name)
		why := p.base.unused(o)
		if why == "" {
			continue
		}
		for _, at := range append([]document.Value{p.product}, p.explicit...) {
			if one := at.Get(name); one.Has() {
				one.Remark("%s; the cells differ in nothing but the name of this value", why)
			}
		}
	}
}

// keys returns the key of each axis. It is nil if an option sets several keys, or cannot be
// there beside a value of another option.
func (p permutations) keys(axes []axis) []string {
	var keys []string
	for _, a := range axes {
		key := ""
		for _, value := range a.values {
			all := p.pairs(permutation{a.option.name: value})
			if len(all) != 1 || key != "" && all[0].Key != key {
				return nil
			}
			key = all[0].Key
		}
		if p.base.unused(a.option) == "" && sometimesUnfit(a.option.name, axes, nil) {
			return nil
		}
		keys = append(keys, key)
	}
	return keys
}

// sometimesUnfit reports whether some permutations cannot have an option.
func sometimesUnfit(name string, axes []axis, rows []permutation) bool {
	for _, a := range axes {
		for _, value := range a.values {
			if unfit(name, permutation{a.option.name: value}.value) != "" {
				return true
			}
		}
	}
	return slices.ContainsFunc(rows, func(row permutation) bool { return unfit(name, row.value) != "" })
}

// once returns the values of an axis, each once.
func (p permutations) once(a axis) []any {
	var all []any
	seen := map[string]bool{}
	for _, value := range a.values {
		pairs := p.pairs(permutation{a.option.name: value})
		id := identity(pairs)
		if seen[id] {
			p.product.Get(a.option.name).Remark("the cells of a sweep differ: a value that is there twice is left out (%s)", id)
			continue
		}
		seen[id] = true
		all = append(all, pairs[0].Value)
	}
	return all
}

// pairs returns the keys and parameters that a permutation sets, in the order of the options' names.
func (p permutations) pairs(values permutation) draft.Inline {
	var all draft.Inline
	for _, name := range p.base.varied {
		value, ok := values[name]
		o, _ := find(p.kind.options, name)
		if !ok || p.base.unused(o) == "" && unfit(name, values.value) != "" {
			continue
		}
		for _, s := range p.settings(o, value) {
			all = append(all, draft.Pair{Key: s.Key, Value: s.Value})
		}
	}
	return all
}

// settings returns what a value of an option sets: keys of the descriptor, or a parameter. A
// value that is not carried over is a parameter that no text uses, so that the cells are as many.
func (p permutations) settings(o option, value any) []kube.Setting {
	if o.settings == nil || p.base.unused(o) != "" {
		return []kube.Setting{{Key: o.parameter(), Value: value}}
	}
	return p.base.settings(o, value)
}

// multiply returns the permutations of the axes, the last one fastest.
func (p permutations) multiply(axes []axis, spec document.Value) []permutation {
	if len(axes) == 0 {
		return nil
	}
	all := []permutation{{}}
	for _, a := range axes {
		if len(all)*len(a.values) > maxRows {
			spec.Get("permutations").Fault("write several sets", "has more than %d permutations that have to be written one by one",
				maxRows)
			return nil
		}
		var next []permutation
		for _, before := range all {
			for _, value := range a.values {
				one := maps.Clone(before)
				one[a.option.name] = value
				next = append(next, one)
			}
		}
		all = next
	}
	return all
}

// remember adds the permutations of the axes to those that are written, if they are not too many.
func (p permutations) remember(written map[string]bool, axes []axis) {
	if len(p.explicit) == 0 {
		return
	}
	product := 1
	for _, a := range axes {
		if product *= len(a.values); product > maxRows {
			return
		}
	}
	for _, one := range p.multiply(axes, p.base.spec) {
		written[identity(p.pairs(one))] = true
	}
}

// identity returns a text that equal keys and values have in common.
func identity(pairs draft.Inline) string {
	var all []string
	for _, one := range pairs {
		all = append(all, fmt.Sprintf("%s=%v", one.Key, one.Value))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
