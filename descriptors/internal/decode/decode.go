package decode

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/suggest"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// Decode reads tree into the struct that root points to, sets the defaults of missing
// keys, and reports every unknown key, every value of the wrong type, and every missing
// required key. A reported key has its default, or the zero value.
func Decode(tree *syntax.Node, root any, kinds ValueTypes) *Report {
	d := &decoder{report: newReport(), discarded: newReport(), valueTypes: kinds}
	target := reflect.ValueOf(root).Elem()
	d.root = target.Type()
	d.preset(target, nil)
	d.table(Value{tree, "", d.report}, target, nil)
	return d.report
}

type decoder struct {
	report      *Report
	valueTypes  ValueTypes
	root        reflect.Type
	tablesByKey map[string]string
	discarded   *Report // takes the reports about defaults
}

// preset gives target and the structs in it their defaults.
func (d *decoder) preset(target reflect.Value, without []string) {
	for _, f := range fields(target.Type()) {
		into := target.FieldByIndex(f.index)
		switch {
		case slices.Contains(without, f.name):
		case f.preset != "":
			node := &syntax.Node{Kind: defaultKind(f.typ), Text: f.preset}
			d.value(Value{node, f.name, d.discarded}, f, into)
		case into.Kind() == reflect.Struct && f.valueType == "":
			d.preset(into, f.without)
		}
	}
}

func defaultKind(t reflect.Type) syntax.Kind {
	switch t.Kind() { //nolint:exhaustive // every other default is written as a text
	case reflect.Bool:
		return syntax.Bool
	case reflect.Int:
		return syntax.Integer
	default:
		return syntax.String
	}
}

// table reads v into the struct target.
func (d *decoder) table(v Value, target reflect.Value, without []string) {
	if v.Kind != syntax.Table {
		v.WrongType(syntax.Table.String())
		return
	}
	rows := fields(target.Type())
	if len(without) > 0 {
		rows = slices.DeleteFunc(slices.Clone(rows), func(f field) bool { return slices.Contains(without, f.name) })
	}
	present := map[string]bool{}
	for _, e := range v.Node.Entries {
		present[e.Name] = true
	}
	for _, e := range v.Node.Entries {
		f, ok := byName(rows, e.Name)
		path := join(v.Path, Quoted(e.Name))
		if !ok {
			f, ok = d.unknown(v, e, rows, present)
			path = join(v.Path, f.name)
		}
		if ok {
			d.report.enter(v.Path, path, e)
			d.value(Value{e.Value, path, d.report}, f, target.FieldByIndex(f.index))
		}
	}
	d.missing(v, rows, present)
}

func byName(rows []field, name string) (field, bool) {
	for _, f := range rows {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}

// unknown reports a key that a table does not have. Where it is likely another
// one that is not there, that one is given, so that its value is looked at too.
func (d *decoder) unknown(v Value, e syntax.Entry, rows []field, present map[string]bool) (field, bool) {
	names := make([]string, 0, len(rows))
	for _, f := range rows {
		if slices.Contains(f.also, e.Name) {
			names = []string{f.name}
			break
		}
		names = append(names, f.name)
	}
	suggestion := suggest.Find(e.Name, names)
	if len(names) == 1 && len(rows) > 1 {
		suggestion = names[0]
	}
	remedy := "its keys are " + list(names)
	if suggestion != "" {
		remedy = fmt.Sprintf("did you mean %s?", suggestion)
	} else if table := d.tableWithKey(e.Name); table != "" {
		remedy = "it is a key of " + table
	}
	d.report.add(Fault{
		At: e.At, Path: join(v.Path, Quoted(e.Name)), Code: fault.UnknownKey,
		Message: "unknown key", Remedy: remedy,
	})
	if suggestion == "" || present[suggestion] {
		return field{}, false
	}
	present[suggestion] = true
	return byName(rows, suggestion)
}

// tableWithKey is the table that has a key called name: the outermost one, if there is
// one such.
func (d *decoder) tableWithKey(name string) string {
	if d.tablesByKey == nil {
		d.tablesByKey = tablesByKey(keySpecs(d.root, "", nil, d.valueTypes))
	}
	return d.tablesByKey[name]
}

func tablesByKey(rows []KeySpec) map[string]string {
	all, depths := map[string]string{}, map[string]int{}
	for _, row := range rows {
		i := strings.LastIndexByte(row.Path, '.')
		if i < 0 {
			continue
		}
		key, table := row.Path[i+1:], strings.ReplaceAll(row.Path[:i], "[]", "")
		depth := strings.Count(table, ".") + strings.Count(row.Path[:i], "[]")
		switch old, ok := depths[key]; {
		case !ok || depth < old:
			all[key], depths[key] = "["+table+"]", depth
		case depth == old:
			all[key] = ""
		}
	}
	return all
}

// missing reports the keys that must be there and are not. A table that lost a
// key may have them.
func (d *decoder) missing(v Value, rows []field, present map[string]bool) {
	if v.Damaged {
		return
	}
	for _, f := range rows {
		if f.need && !present[f.name] {
			d.report.add(Fault{
				At: v.At, Path: join(v.Path, f.name), Code: fault.Missing,
				Message: "is missing", Remedy: d.example(f, v.Path),
			})
		}
	}
}

// example says how a key of table is written.
func (d *decoder) example(f field, table string) string {
	path := join(table, f.name)
	inner, many := f.table()
	switch {
	case many:
		return fmt.Sprintf("add [[%s]]", strings.ReplaceAll(path, "[0]", ""))
	case inner != nil:
		return fmt.Sprintf("add the table [%s]", path)
	case f.example != "":
		return fmt.Sprintf("add %s = %s", f.name, f.example)
	}
	return fmt.Sprintf("add %s = …", f.name)
}

// value reads v, the value of f, into target.
func (d *decoder) value(v Value, f field, target reflect.Value) {
	if f.valueType != "" {
		if read := d.valueTypes[f.valueType].Read(v); read != nil {
			set(target, reflect.ValueOf(read))
		}
		return
	}
	if len(f.choices) > 0 {
		d.choice(v, f, target)
		return
	}
	inner, many := f.table()
	switch {
	case many:
		d.list(v, f, target)
	case inner != nil && target.Kind() == reflect.Pointer:
		fresh := reflect.New(inner)
		d.preset(fresh.Elem(), f.without)
		d.table(v, fresh.Elem(), f.without)
		target.Set(fresh)
	case inner != nil:
		d.table(v, target, f.without)
	default:
		d.scalar(v, target)
	}
}

func (d *decoder) scalar(v Value, target reflect.Value) {
	switch target.Kind() { //nolint:exhaustive // the fields of the language have no other
	case reflect.Bool:
		if b, ok := v.Bool(); ok {
			target.SetBool(b)
		}
	case reflect.Int:
		if n, ok := v.Int(-1<<31, 1<<31-1); ok {
			target.SetInt(n)
		}
	case reflect.Map:
		d.anything(v, target)
	default:
		if s, ok := v.String(); ok {
			target.SetString(s)
		}
	}
}

// set puts read, or a pointer to it, into target.
func set(target, read reflect.Value) {
	if target.Kind() == reflect.Pointer {
		target.Set(reflect.New(target.Type().Elem()))
		target = target.Elem()
	}
	target.Set(read.Convert(target.Type()))
}

func (d *decoder) choice(v Value, f field, target reflect.Value) {
	s, ok := v.String()
	if !ok || s == "" && f.empty {
		return
	}
	var values []string
	for _, c := range f.choices {
		if s == c.value || slices.Contains(c.aliases, s) {
			target.SetString(c.value)
			return
		}
		values = append(values, c.value)
	}
	for _, c := range f.choices {
		values = append(values, c.aliases...)
	}
	remedy := "write " + list(values[:len(f.choices)])
	if suggestion := suggest.Find(s, values); suggestion != "" {
		remedy = fmt.Sprintf("did you mean %q?", suggestion)
	}
	v.Fault(fault.NotOneOf, fmt.Sprintf("%q is not one of its values", s), remedy)
}

func (d *decoder) list(v Value, f field, target reflect.Value) {
	items := reflect.MakeSlice(f.typ, 0, len(v.Node.Items))
	for _, item := range v.Items("a list of tables") {
		one := reflect.New(f.typ.Elem()).Elem()
		d.preset(one, f.without)
		d.table(item, one, f.without)
		items = reflect.Append(items, one)
	}
	target.Set(items)
}

func (d *decoder) anything(v Value, target reflect.Value) {
	all := map[string]any{}
	for key, value := range v.Entries(syntax.Table.String()) {
		all[key.Text] = value.Plain()
	}
	target.Set(reflect.ValueOf(all))
}

// list is "a, b or c".
func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
