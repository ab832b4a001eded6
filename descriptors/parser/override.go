package parser

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/edit"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// MaxOverrides is the number of overrides above which none is taken.
const MaxOverrides = 50

// An Override puts a value in place of one of a descriptor, or takes a key away.
type Override struct {
	// Path is the key: hardware.gpus, output.metrics.0.units (or
	// output.metrics[0].units), env.vars."A.B". The number of elements that a
	// list has adds one to it.
	Path string

	// Value is a value of TOML, else the text of a string: 4, [80, 81], "4" in
	// quotes for a text of digits, 2h. Where it is empty the key is taken away;
	// two quotes are the empty string.
	Value string
}

// file is how faults name the place of an override.
func (o Override) file() string { return "--set " + o.Path }

// ParseWith is Parse of text with overrides in it, in their order. Effective is
// the text with them: Parse reads the same descriptor from it, comments and all
// that is not overridden are in it byte for byte. Without overrides it is text;
// it is nil where text is not TOML, or an override cannot be put in.
//
// A fault that comes from an override has "--set PATH" as its file, and the line
// and column in the override's value. Other faults have their places in text,
// and come first.
func ParseWith(file string, text []byte, set []Override) (d *descriptors.Descriptor, effective []byte, faults Faults) {
	return Parser{}.ParseWith(file, text, set)
}

// ParseWith is as the function ParseWith.
func (p Parser) ParseWith(file string, text []byte, set []Override) (d *descriptors.Descriptor, effective []byte, faults Faults) {
	if len(set) == 0 {
		d, faults = p.Parse(file, text)
		return d, text, faults
	}
	if faults, bad := unreadable(file, text); bad {
		return nil, nil, faults
	}
	mark := text[:len(text)-len(bytes.TrimPrefix(text, []byte(byteOrderMark)))]
	body := text[len(mark):]
	if _, broken := syntax.Parse(body); len(broken) > 0 {
		_, faults = p.Parse(file, text)
		return nil, nil, slices.Concat(faults, p.overrideFaults(set))
	}
	edited, refused := applyOverrides(body, set, MaxSize-len(mark))
	if edited.Len() > MaxSize-len(mark) {
		return nil, nil, refused
	}
	d, faults = p.Parse(file, edited.Bytes())
	here := func(f Fault) bool { return f.File == file }
	elsewhere := slices.DeleteFunc(slices.Clone(faults), here) // in a file that came with the descriptor
	faults = slices.DeleteFunc(faults, func(f Fault) bool { return !here(f) })
	faults = slices.Concat(elsewhere, mapToOrigins(faults, body, edited, set), refused)
	if len(refused) > 0 {
		return nil, nil, faults
	}
	return d, slices.Concat(mark, edited.Bytes()), faults
}

// overrideFaults are the faults of overrides of a text that is not TOML: those that they
// have whatever the text is.
func (p Parser) overrideFaults(set []Override) Faults {
	edited, refused := applyOverrides(nil, set, MaxSize)
	tree, _ := syntax.Parse(edited.Bytes())
	tree.Damage()
	_, found := p.read(tree, true)
	return slices.Concat(mapToOrigins(collect("", found).Errors(), nil, edited, set), refused)
}

// applyOverrides puts overrides into a text that is TOML. Those that cannot be put in are
// refused, and left out; after one with which the text has more than most bytes
// there are no others.
func applyOverrides(body []byte, set []Override, most int) (*edit.Text, Faults) {
	var refused Faults
	edited := edit.New(body)
	if len(set) > MaxOverrides {
		return edited, Faults{set[MaxOverrides].fault(fault.Override,
			fmt.Sprintf("is override %d; %d at most are taken", MaxOverrides+1, MaxOverrides), "write a descriptor with these values")}
	}
	for i, o := range set {
		if f, bad := o.applyTo(edited, i); bad {
			refused = append(refused, f)
		}
		if edited.Len() > most {
			f := o.fault(fault.TooLarge, fmt.Sprintf("with it the descriptor is larger than %d KiB, the most that is taken", MaxSize>>10),
				"")
			return edited, append(refused, f)
		}
	}
	return edited, refused
}

// applyTo puts o, which is number i, into a text, or says why not.
func (o Override) applyTo(text *edit.Text, i int) (Fault, bool) {
	const deepest = 24
	switch {
	case !utf8.ValidString(o.Path) || !utf8.ValidString(o.Value):
		return o.fault(fault.NotUTF8, "the override is not UTF-8", "write it as UTF-8"), true
	case len(o.Path)+len(o.Value) > MaxSize:
		return o.fault(fault.TooLarge, fmt.Sprintf("the override is larger than %d KiB", MaxSize>>10), ""), true
	case strings.ContainsRune(o.Path, 0):
		return o.fault(fault.Override, "the path holds a NUL character", "leave it out"), true
	}
	path, err := edit.ReadPath(o.Path)
	if e, ok := errors.AsType[*edit.PathError](err); ok {
		f := o.fault(fault.Override, fmt.Sprintf("%q is not the path of a key", o.Path), e.Remedy)
		f.Path = ""
		return f, true
	}
	if len(path) > deepest {
		return o.fault(fault.TooDeep, fmt.Sprintf("a path of %d parts", len(path)), ""), true
	}
	if o.Value == "" {
		err = text.Remove(path)
	} else {
		err = text.Set(path, o.Value, i, lists())
	}
	if e, ok := errors.AsType[*edit.PathNotFoundError](err); ok {
		at := display(path[:max(e.Step+1, 0)])
		f := o.fault(fault.Override, fmt.Sprintf("%s %v", at, e.Err), "")
		f.Path = display(path)
		return f, true
	}
	if e, ok := errors.AsType[*edit.BrokenError](err); ok {
		f := o.fault(decode.Code(e.Fault), e.Fault.Message, e.Fault.Remedy)
		f.Path = display(path)
		return f, true
	}
	return Fault{}, false
}

func (o Override) fault(code, message, remedy string) Fault {
	return Fault{File: o.file(), Line: 1, Column: 1, Path: o.Path, Code: code, Message: message, Remedy: remedy}
}

// display is a path as faults have it.
func display(path []edit.Step) string {
	var s strings.Builder
	for i, step := range path {
		switch {
		case step.Bracket:
			s.WriteString("[" + step.Name + "]")
		case i > 0:
			s.WriteString("." + decode.Quoted(step.Name))
		default:
			s.WriteString(decode.Quoted(step.Name))
		}
	}
	return s.String()
}

// mapToOrigins gives faults of an edited text the places where these come from.
func mapToOrigins(faults Faults, body []byte, edited *edit.Text, set []Override) Faults {
	origins := edited.Origins()
	lines, inBody := syntax.NewLines(edited.Bytes()), syntax.NewLines(body)
	var inFile, inOverrides Faults
	for _, f := range faults {
		from, at := edit.File, 0
		if !isRootFault(f) {
			from, at = origins.Of(lines.Offset(syntax.Position{Line: f.Line, Column: f.Column}))
		}
		if from == edit.File {
			f = f.at(inBody.Position(at))
			inFile = append(inFile, f)
			continue
		}
		o := set[from]
		f.File = o.file()
		f = f.at(syntax.NewLines([]byte(o.Value)).Position(min(at, len(o.Value))))
		f.Remedy = o.remedy(f)
		inOverrides = append(inOverrides, f)
	}
	slices.SortStableFunc(inOverrides, func(a, b Fault) int {
		return slices.IndexFunc(set, a.isFrom) - slices.IndexFunc(set, b.isFrom)
	})
	return append(inFile, inOverrides...)
}

// at is f at a position.
func (f Fault) at(p syntax.Position) Fault {
	f.Line, f.Column = p.Line, p.Column
	return f
}

// isRootFault reports whether f is about the outermost table, which is the file's.
func isRootFault(f Fault) bool {
	return f.Line == 1 && f.Column == 1 && (f.Code == fault.Missing || f.Path == "")
}

// isFrom reports whether f comes from o.
func (f Fault) isFrom(o Override) bool { return f.File == o.file() }

// remedy is that of f where o is written on a command line: its shell takes
// quotes away.
func (o Override) remedy(f Fault) string {
	if f.Code == fault.WrongType && f.Remedy == fmt.Sprintf("write %q", o.Value) {
		return fmt.Sprintf("write --set '%s=%q'", o.Path, o.Value)
	}
	return f.Remedy
}
