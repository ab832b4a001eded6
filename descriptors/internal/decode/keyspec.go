// Package decode reads a tree of TOML into Go types whose fields are the rows of
// a table: each names a key, its type, its default and its rule.
//
// A field's tags are:
//
//	toml:"name"       the key
//	need:"yes"        the key must be there
//	default:"text"    the value without it
//	kind:"name"       the Kind that reads the value; without it the Go type does
//	one:"a b=alias"   the values there are, each with its other spellings
//	empty:"yes"       beside them, the empty one
//	without:"a b"     keys that the table does not have here
//	also:"a b"        names under which people look for the key
//	example:"text"    a value, as it is written in a file
//
// A field of an embedded struct counts as one of the struct around it.
package decode

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// A KeySpec is one key of a language.
type KeySpec struct {
	Path      string // [] stands for every item of a list
	Field     string // Type.Field, to find the doc comment
	Type      string
	Required  bool
	Default   string
	Values    []string // those there are; nil for any
	Aliases   []string // other spellings of values
	Example   string   // "" where none is given
	ValueType string   // "" for values that only have their type
	Empty     bool     // the empty text is one of the values too
}

// KeySpecs are the keys of the struct that root points to, in the order of its
// fields, each table before its keys.
func KeySpecs(root any, kinds ValueTypes) []KeySpec {
	return keySpecs(reflect.TypeOf(root).Elem(), "", nil, kinds)
}

// Lists is a function that reports whether the struct that root points to has a list at a
// path of keys.
func Lists(root any, kinds ValueTypes) func(keys string) bool {
	lists := sync.OnceValue(func() map[string]bool {
		all := map[string]bool{}
		for _, row := range KeySpecs(root, kinds) {
			all[strings.ReplaceAll(row.Path, "[]", "")] = strings.HasPrefix(row.Type, "list")
		}
		return all
	})
	return func(keys string) bool { return lists()[keys] }
}

func keySpecs(t reflect.Type, path string, without []string, kinds ValueTypes) []KeySpec {
	var all []KeySpec
	for _, f := range fields(t) {
		if slices.Contains(without, f.name) {
			continue
		}
		row := KeySpec{
			Path: join(path, f.name), Field: f.owner + "." + f.goName, Type: f.typeName(kinds),
			Required: f.need, Default: f.preset, ValueType: f.valueType, Example: f.example,
		}
		for _, c := range f.choices {
			row.Values = append(row.Values, c.value)
			row.Aliases = append(row.Aliases, c.aliases...)
		}
		row.Empty = f.empty
		all = append(all, row)
		if inner, list := f.table(); inner != nil {
			if list {
				row.Path += "[]"
			}
			all = append(all, keySpecs(inner, row.Path, f.without, kinds)...)
		}
	}
	return all
}

// field holds the tags of a field.
type field struct {
	name, goName, owner string
	index               []int
	typ                 reflect.Type
	need, empty         bool
	preset, valueType   string
	example             string
	choices             []choice
	without, also       []string
}

type choice struct {
	value   string
	aliases []string
}

// fieldsByType has the fields of types that were read before: tags take half the time
// of a descriptor.
var fieldsByType sync.Map //nolint:gochecknoglobals // a cache of what never changes

// fields are those of t that have a key. Callers leave them as they are.
func fields(t reflect.Type) []field {
	known, _ := fieldsByType.Load(t)
	if all, ok := known.([]field); ok {
		return all
	}
	all := readFields(t)
	fieldsByType.Store(t, all)
	return all
}

func readFields(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			for _, inner := range readFields(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				all = append(all, inner)
			}
			continue
		}
		name := f.Tag.Get("toml")
		if name == "" || name == "-" {
			continue
		}
		all = append(all, field{
			name: name, goName: f.Name, owner: t.Name(), index: []int{i}, typ: f.Type,
			need: f.Tag.Get("need") != "", empty: f.Tag.Get("empty") != "",
			preset: f.Tag.Get("default"), valueType: f.Tag.Get("kind"),
			example: f.Tag.Get("example"),
			choices: choices(f.Tag.Get("one")),
			without: strings.Fields(f.Tag.Get("without")), also: strings.Fields(f.Tag.Get("also")),
		})
	}
	return all
}

func choices(tag string) []choice {
	var all []choice
	for word := range strings.FieldsSeq(tag) {
		names := strings.Split(word, "=")
		all = append(all, choice{names[0], names[1:]})
	}
	return all
}

// table is the struct type of a field that is a table or a list of them.
func (f field) table() (t reflect.Type, list bool) {
	t = f.typ
	if f.valueType != "" {
		return nil, false
	}
	if t.Kind() == reflect.Slice {
		t, list = t.Elem(), true
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	return t, list
}

// typeName is the type of f in the manual.
func (f field) typeName(kinds ValueTypes) string {
	if k, ok := kinds[f.valueType]; ok && k.Type != "" {
		return k.Type
	}
	if t, list := f.table(); list {
		return "list of tables"
	} else if t != nil {
		return "table"
	}
	t := f.typ
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() { //nolint:exhaustive // the other kinds are no type of TOML
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Map:
		return "table of any"
	default:
		return "string"
	}
}

// Schema is the JSON Schema of a value, without the keys in it. The schemas of value
// types come from kinds.
func (r KeySpec) Schema(kinds map[string]map[string]any) map[string]any {
	if r.ValueType != "" {
		return kinds[r.ValueType]
	}
	types := map[string]string{
		"list of tables": "array", "table": "object", "bool": "boolean", "integer": "integer", "table of any": "object", "string": "string",
	}
	s := map[string]any{"type": types[r.Type]}
	if r.Values == nil {
		return s
	}
	var values []any
	if r.Empty {
		values = append(values, "")
	}
	for _, value := range slices.Concat(r.Values, r.Aliases) {
		values = append(values, value)
	}
	s["enum"] = values
	return s
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
