package shape

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

// A Report collects what is found in one file.
type Report struct {
	Faults []Fault
	places map[string]place
	order  map[string][]string // the names in a table, in the order of the file
	bad    map[string]bool
}

// place is where a key is, and where its value.
type place struct{ key, value syntax.Position }

func newReport() *Report {
	return &Report{places: map[string]place{}, order: map[string][]string{}, bad: map[string]bool{}}
}

// Has reports whether the file says the key at path.
func (r *Report) Has(path string) bool {
	_, ok := r.places[path]
	return ok
}

// Good reports whether the file says the key at path, and says it well.
func (r *Report) Good(path string) bool { return r.Has(path) && !r.bad[path] }

// Bad reports whether there is an error about path itself.
func (r *Report) Bad(path string) bool { return r.bad[path] }

// Order are the names in the table at path in the order of the file.
func (r *Report) Order(path string) []string { return r.order[path] }

// Fault reports what is wrong with the value at path. Its place is that of the
// nearest thing that the file says: the value, else the table around it.
func (r *Report) Fault(path, code, message, remedy string) {
	r.add(Fault{At: r.value(path), Path: path, Code: code, Message: message, Remedy: remedy})
}

// Warn reports what is likely not wanted about the key at path.
func (r *Report) Warn(path, code, message, remedy string) {
	at := r.value(path)
	if p, ok := r.places[path]; ok {
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
		r.bad[f.Path] = true
	}
}

func (r *Report) value(path string) syntax.Position {
	for {
		if p, ok := r.places[path]; ok {
			return p.value
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return syntax.Position{Line: 1, Column: 1}
		}
		path = path[:i]
	}
}

// BadBelow reports whether there is an error about something below path.
func (r *Report) BadBelow(path string) bool {
	return slices.ContainsFunc(r.Faults, func(f Fault) bool {
		return !f.Warning && strings.HasPrefix(f.Path, path+".")
	})
}
