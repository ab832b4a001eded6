package decode

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// ValueTypes are the kinds of values of a language by their names.
type ValueTypes map[string]ValueType

// A ValueType is a type of values of the language.
type ValueType struct {
	Type string // as the manual says it; "" where the Go type says it
	Rule string // rule for values, for the manual

	// Read is the value for the field: of its type, or convertible to it. Read reports
	// errors, and then returns nil.
	Read func(Value) any
}

// A Value is a value of the file that a Kind reads.
type Value struct {
	*syntax.Node
	Path   string
	report *Report
}

// Fault reports an error in v.
func (v Value) Fault(code, message, remedy string) { v.FaultAt(v.At, code, message, remedy) }

// FaultAt reports an error at a position inside v.
func (v Value) FaultAt(at syntax.Position, code, message, remedy string) {
	v.report.add(Fault{At: at, Path: v.Path, Code: code, Message: message, Remedy: remedy})
}

// Warn reports a probable mistake in v.
func (v Value) Warn(code, message, remedy string) {
	v.report.add(Fault{At: v.At, Path: v.Path, Code: code, Message: message, Remedy: remedy, Warning: true})
}

// WrongType reports that v is not a want, as in "a string".
func (v Value) WrongType(want string) {
	v.Fault(fault.WrongType, fmt.Sprintf("must be %s, not %s", want, v.Kind), v.cast(want))
}

// cast is the value written with the wanted type, if one line suffices.
func (v Value) cast(want string) string {
	switch {
	case want == syntax.String.String() && v.Kind != syntax.List && v.Kind != syntax.Table:
		return fmt.Sprintf("write %q", v.Text)
	case want == syntax.Integer.String() && v.Kind == syntax.String:
		if n, err := strconv.Atoi(strings.TrimSpace(v.Text)); err == nil {
			return fmt.Sprintf("write %d, without quotes", n)
		}
	case want == syntax.Bool.String() && v.Kind == syntax.String:
		if b, err := strconv.ParseBool(strings.ToLower(v.Text)); err == nil {
			return fmt.Sprintf("write %t, without quotes", b)
		}
	case strings.HasPrefix(want, "a list of tables") && v.Kind == syntax.Table && v.Headed():
		return fmt.Sprintf("write [[%s]], with two brackets", v.Path)
	case strings.HasPrefix(want, "a table") && v.Kind == syntax.List && v.Headed():
		return fmt.Sprintf("write [%s], with one bracket", v.Path)
	case strings.HasPrefix(want, "a list") && v.Kind == syntax.Integer:
		return fmt.Sprintf("write [%s]", v.Text)
	}
	return ""
}

// String is the content of a string. It is false, and reported, for another
// type, and for a text with a NUL in it, which no program can be given.
func (v Value) String() (string, bool) {
	if v.Kind != syntax.String {
		v.WrongType(syntax.String.String())
		return "", false
	}
	if strings.ContainsRune(v.Text, 0) {
		v.Fault(fault.BadText, "holds a NUL character", "leave it out")
		return "", false
	}
	return v.Text, true
}

// Int is the value of a whole number from low to high. It is false, and
// reported, for another number or type.
func (v Value) Int(low, high int64) (int64, bool) {
	if v.Kind != syntax.Integer {
		v.WrongType(syntax.Integer.String())
		return 0, false
	}
	n, err := v.Node.Int()
	switch {
	case err != nil || n > high:
		v.Fault(fault.OutOfRange, fmt.Sprintf("%s is more than %d", v.Text, high), "")
		return 0, false
	case n < low:
		v.Fault(fault.OutOfRange, fmt.Sprintf("%s is less than %d", v.Text, low), "")
		return 0, false
	}
	return n, true
}

// Bool is the value of a bool. It is false, and reported, for another type.
func (v Value) Bool() (value, ok bool) {
	if v.Kind != syntax.Bool {
		v.WrongType(syntax.Bool.String())
		return false, false
	}
	return v.Text == "true", true
}

// Entries are the keys of a table with their values; a Key's place is that of
// the name. There are none, and it is reported, where v is no table.
func (v Value) Entries(want string) iter.Seq2[Value, Value] {
	return func(yield func(Value, Value) bool) {
		if v.Kind != syntax.Table {
			v.WrongType(want)
			return
		}
		for _, e := range v.Node.Entries {
			path := join(v.Path, Quoted(e.Name))
			v.report.enter(v.Path, path, e)
			key := Value{&syntax.Node{Kind: syntax.String, At: e.At, Text: e.Name}, path, v.report}
			if !yield(key, Value{e.Value, path, v.report}) {
				return
			}
		}
	}
}

// Items are the items of a list. There are none, and it is reported, where v is
// no list.
func (v Value) Items(want string) iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		if v.Kind != syntax.List {
			v.WrongType(want)
			return
		}
		for i, item := range v.Node.Items {
			path := v.Path + "[" + strconv.Itoa(i) + "]"
			v.report.locations[path] = location{key: item.At, value: item.At}
			if !yield(i, Value{item, path, v.report}) {
				return
			}
		}
	}
}

func (r *Report) enter(table, path string, e syntax.Entry) {
	r.locations[path] = location{e.At, e.Value.At, e.Value}
	r.order[table] = append(r.order[table], e.Name)
}

// Quoted is a name as a key is written.
func Quoted(name string) string {
	for _, c := range name {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return strconv.Quote(name)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}
