package decode

import (
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// A Fault is something that is wrong at a place, or likely not wanted.
type Fault struct {
	At      syntax.Position
	Path    string
	Code    string
	Message string
	Remedy  string
	Warning bool
}

// A Report collects the faults of one file.
type Report struct {
	Faults    []Fault
	locations map[string]location
	order     map[string][]string // the names in a table, in the order of the file
	invalid   map[string]bool
}

// location is where a key is, and where its value.
type location struct {
	key, value syntax.Position
	node       *syntax.Node // the value; nil for an item of a list
}

func newReport() *Report {
	return &Report{locations: map[string]location{}, order: map[string][]string{}, invalid: map[string]bool{}}
}

// Has reports whether the file says the key at path.
func (r *Report) Has(path string) bool {
	_, ok := r.locations[path]
	return ok
}

// IsValid reports whether the file says the key at path, and says it well.
func (r *Report) IsValid(path string) bool { return r.Has(path) && !r.invalid[path] }

// HasError reports whether there is an error about path itself.
func (r *Report) HasError(path string) bool { return r.invalid[path] }

// Order are the names in the table at path in the order of the file.
func (r *Report) Order(path string) []string { return r.order[path] }

// Fault reports an error in the value at path. Its position is that of the value, else of
// the nearest table around it in the file.
func (r *Report) Fault(path, code, message, remedy string) {
	r.add(Fault{At: r.value(path), Path: path, Code: code, Message: message, Remedy: remedy})
}

// FaultInside reports an error at a line and a column of the content of the string at path, or
// of the string text of the table there.
func (r *Report) FaultInside(path string, line, column int, code, message, remedy string) {
	at := r.value(path)
	node := r.locations[path].node
	switch {
	case node == nil:
	case node.Kind == syntax.Table && node.Get("text") != nil:
		at = node.Get("text").InsideText(line, column)
	default:
		at = node.InsideLines(line, column)
	}
	r.add(Fault{At: at, Path: path, Code: code, Message: message, Remedy: remedy})
}

// Warn reports a probable mistake in the key at path.
func (r *Report) Warn(path, code, message, remedy string) {
	at := r.value(path)
	if p, ok := r.locations[path]; ok {
		at = p.key
	}
	r.add(Fault{At: at, Path: path, Code: code, Message: message, Remedy: remedy, Warning: true})
}

// Drop takes back the errors below path whose code is none of keep.
func (r *Report) Drop(path string, keep ...string) {
	r.Faults = slices.DeleteFunc(r.Faults, func(f Fault) bool {
		return !f.Warning && strings.HasPrefix(f.Path, path+".") && !slices.Contains(keep, f.Code)
	})
}

func (r *Report) add(f Fault) {
	r.Faults = append(r.Faults, f)
	if !f.Warning {
		r.invalid[f.Path] = true
	}
}

func (r *Report) value(path string) syntax.Position {
	for {
		if p, ok := r.locations[path]; ok {
			return p.value
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return syntax.Position{Line: 1, Column: 1}
		}
		path = path[:i]
	}
}

// HasErrorBelow reports whether there is an error about something below path.
func (r *Report) HasErrorBelow(path string) bool {
	return slices.ContainsFunc(r.Faults, func(f Fault) bool {
		return !f.Warning && strings.HasPrefix(f.Path, path+".")
	})
}
