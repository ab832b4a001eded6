package grid

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/edit"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/suggest"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// MaxParameters is the number of names above which a sweep is refused.
const MaxParameters = 50

// reader makes a grid, and finds the faults of a sweep.
type reader struct {
	g       *Grid
	faults  []decode.Fault
	outside int // bytes of the file without the table sweep
}

func (r *reader) failed() bool { return decode.HasError(r.faults) }

func (r *reader) fault(at syntax.Position, path, code, message, remedy string) {
	r.faults = append(r.faults, decode.Fault{At: at, Path: path, Code: code, Message: message, Remedy: remedy})
}

func (r *reader) warn(at syntax.Position, path, code, message, remedy string) {
	r.faults = append(r.faults, decode.Fault{At: at, Path: path, Code: code, Message: message, Remedy: remedy, Warning: true})
}

// read takes the lists and rows of the table sweep.
func (r *reader) read(sweep *syntax.Node) {
	for _, e := range entries(sweep, "product") {
		r.g.axes = append(r.g.axes, r.product(e))
	}
	if zip := entries(sweep, "zip"); len(zip) > 0 {
		r.g.axes = append(r.g.axes, r.zip(zip))
	}
	r.g.explicit = r.rows(sweep, "explicit", r.choice)
	r.g.exclude = r.rows(sweep, "exclude", r.match)
	if len(r.g.axes) == 0 && len(r.g.explicit) == 0 && !r.failed() {
		r.fault(sweep.At, "sweep", fault.NoCells, "has no values", "add [sweep.product] with a list of values for a name")
	}
	if n := len(r.g.parameters); n > MaxParameters {
		p := r.g.parameters[MaxParameters]
		r.fault(p.at, p.keyPath, fault.BadSweep, fmt.Sprintf("is name %d; %d at most are taken", MaxParameters+1, MaxParameters),
			"vary less, or move values that change together into zip")
	}
}

func entries(sweep *syntax.Node, name string) []syntax.Entry {
	if n := sweep.Get(name); n != nil {
		return n.Entries
	}
	return nil
}

func (r *reader) product(e syntax.Entry) axis {
	var a axis
	for _, item := range e.Value.Items {
		a = append(a, []choice{r.choice("sweep.product", e.Name, e.At, item)})
	}
	return a
}

func (r *reader) zip(lists []syntax.Entry) axis {
	n := len(lists[0].Value.Items)
	a := make(axis, n)
	for _, e := range lists {
		at := "sweep.zip." + decode.Quoted(e.Name)
		if _, ok := r.g.numbers[e.Name]; ok {
			r.fault(e.At, at, fault.BadSweep, "is in product too", "keep one of the two")
		}
		if m := len(e.Value.Items); m != n {
			r.fault(e.Value.At, at, fault.BadSweep, fmt.Sprintf("has %d values, and %s has %d", m, lists[0].Name, n),
				"give all lists of zip as many values")
		}
		for i, item := range e.Value.Items[:min(n, len(e.Value.Items))] {
			a[i] = append(a[i], r.choice("sweep.zip", e.Name, e.At, item))
		}
	}
	return a
}

// rows are the rows called name, whose values read turns into choices.
func (r *reader) rows(sweep *syntax.Node, name string, read func(table, name string, at syntax.Position, v *syntax.Node) choice) []row {
	list := sweep.Get(name)
	if list == nil {
		return nil
	}
	var all []row
	for i, item := range list.Items {
		one := row{at: item.At, keyPath: fmt.Sprintf("sweep.%s[%d]", name, i)}
		for _, e := range item.Entries {
			one.choices = append(one.choices, read(one.keyPath, e.Name, e.At, e.Value))
		}
		slices.SortFunc(one.choices, func(a, b choice) int { return a.parameter - b.parameter })
		all = append(all, one)
	}
	return all
}

// choice is a value of a name, both of which may be new.
func (r *reader) choice(table, name string, at syntax.Position, v *syntax.Node) choice {
	i, ok := r.g.numbers[name]
	if !ok {
		i = len(r.g.parameters)
		r.g.numbers[name] = i
		r.g.parameters = append(r.g.parameters, newParameter(table, name, at))
	}
	p := &r.g.parameters[i]
	text := v.TOML()
	n, ok := p.byText[text]
	if !ok {
		n = len(p.values)
		p.byText[text] = n
		p.values = append(p.values, newValue(v, text))
	}
	return choice{i, n, v.At}
}

func newParameter(table, name string, at syntax.Position) parameter {
	p := parameter{name: name, keyPath: table + "." + decode.Quoted(name), at: at, byText: map[string]int{}}
	if strings.Contains(name, ".") {
		p.path, _ = edit.ReadPath(name) // the language takes nothing else
	}
	return p
}

func newValue(n *syntax.Node, text string) value {
	v := value{node: n, text: text}
	if n.Kind != syntax.List && n.Kind != syntax.Table {
		v.content = n.Text
		v.plain = n.Text != "" && !unicode.IsSpace(rune(n.Text[0])) &&
			!strings.ContainsAny(n.Text, `"'\`) && !strings.ContainsFunc(n.Text, unicode.IsControl)
	}
	return v
}

// match is a value that cells are compared with.
func (r *reader) match(table, name string, at syntax.Position, v *syntax.Node) choice {
	i, ok := r.g.numbers[name]
	if !ok {
		r.fault(at, table+"."+decode.Quoted(name), fault.NoParameter,
			"no other list or row of [sweep] gives it a value", r.suggestion(name))
		return choice{value: -1}
	}
	if n, ok := r.g.parameters[i].byText[v.TOML()]; ok {
		return choice{i, n, v.At}
	}
	return choice{i, -1, v.At}
}

// suggestion is a remedy for a name that is no parameter's.
func (r *reader) suggestion(name string) string {
	var names []string
	for _, p := range r.g.parameters {
		names = append(names, p.name)
	}
	if s := suggest.Find(name, names); s != "" {
		return fmt.Sprintf("did you mean %s?", s)
	}
	return "give it a list in [sweep.product]"
}

// paths finds keys that two names set, and gives names their labels.
func (r *reader) paths() {
	const separator = "\x00"
	byPath, ends := map[string]string{}, map[string]int{}
	for _, p := range r.g.parameters {
		ends[label(p)]++
		if key := join(p.path, separator); p.path != nil && byPath[key] == "" {
			byPath[key] = p.name
		}
	}
	for i, p := range r.g.parameters {
		r.g.parameters[i].label = label(p)
		if ends[label(p)] > 1 {
			r.g.parameters[i].label = p.name
		}
		for n := range p.path {
			outer, ok := byPath[join(p.path[:n+1], separator)]
			if ok && outer != p.name {
				r.fault(p.at, p.keyPath, fault.BadSweep, fmt.Sprintf("sets a key that %s sets too", outer), "keep one of the two")
				break
			}
		}
	}
	r.g.byName = make([]int, len(r.g.parameters))
	for i := range r.g.byName {
		r.g.byName[i] = i
	}
	slices.SortFunc(r.g.byName, func(a, b int) int { return strings.Compare(r.g.parameters[a].name, r.g.parameters[b].name) })
}

func join(path []edit.Step, separator string) string {
	names := make([]string, len(path))
	for i, s := range path {
		names[i] = s.Name
	}
	return strings.Join(names, separator)
}

// label is the short name of a parameter: the last key of a path.
func label(p parameter) string {
	if p.path == nil {
		return p.name
	}
	last := p.path[len(p.path)-1].Name
	if strings.Trim(last, "0123456789") == "" {
		return p.name
	}
	return decode.Quoted(last)
}
