// Package convert turns the inputs of other benchmark systems into descriptors.
package convert

import (
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/document"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/draft"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/eks"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/kubebench"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/original"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/perftest"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

// Systems whose inputs are converted.
const (
	KubePerftest = "kube-perftest"
	Kubebench    = "kubebench"
	EKS          = "eks"
	BenchmarkAI  = "benchmark-ai"
)

// MaxSize is how many bytes a file may have.
const MaxSize = document.MaxSize

// Systems returns the names of the systems.
func Systems() []string { return []string{KubePerftest, Kubebench, EKS, BenchmarkAI} }

// A Note is a remark or a fault about a key of a file.
type Note = document.Note

// A Result is what a file becomes. If it has faults it has no files.
type Result struct {
	Files   []File
	Remarks []Note // what is not carried over, and why
	Faults  []Note // what cannot be read
}

// A File is a descriptor that the parser of descriptors accepts.
type File struct {
	Name string // without .toml: letters, digits, -, _ and .; no two of a Result are the same
	Text string
}

// Convert converts a file of one of Systems. Equal texts give equal results.
func Convert(system string, text []byte) Result {
	notes := &document.Notes{}
	var r Result
	r.Files = read(system, text, notes)
	r.Remarks, r.Faults = notes.Remarks(), notes.Faults()
	if len(r.Faults) == 0 {
		r.check()
	}
	if len(r.Faults) > 0 {
		r.Files = nil
	}
	return r
}

// read returns the descriptors of a file. It may have faults in notes.
func read(system string, text []byte, notes *document.Notes) []File {
	if system == BenchmarkAI {
		return readOriginal(text, notes)
	}
	if isOriginal(text) {
		otherSystem(notes, system, BenchmarkAI)
		return nil
	}
	var all []File
	add := func(d *draft.Draft, name string) {
		all = append(all, File{Name: fileName(name, all), Text: d.String()})
	}
	documents := readDocuments(system, text, notes)
	switch system {
	case EKS:
		for _, b := range eks.Convert(documents) {
			add(b.Draft, b.Name)
		}
	case KubePerftest:
		for _, v := range documents {
			add(perftest.Convert(v))
		}
	case Kubebench:
		for _, v := range documents {
			add(kubebench.Convert(v))
		}
	}
	return all
}

// readOriginal converts a descriptor of the original system.
func readOriginal(text []byte, notes *document.Notes) []File {
	if !isOriginal(text) {
		if other := systemOf(text); other != "" {
			otherSystem(notes, BenchmarkAI, other)
			return nil
		}
	}
	converted, name := original.Convert(text, notes)
	return []File{{Name: fileName(name, nil), Text: converted}}
}

// isOriginal reports whether a text is a descriptor, as far as it can be read.
func isOriginal(text []byte) bool {
	v := document.ReadTOML(text[:min(len(text), parser.MaxSize)], &document.Notes{})
	return v.Peek("hardware").Kind() == document.Table && v.Peek("env").Kind() == document.Table
}

// otherSystem says that a file is one of another system.
func otherSystem(notes *document.Notes, system, other string) {
	notes.Fault("use --from "+other, "is no file of %s: it looks like one of %s", system, other)
}

// readDocuments returns the documents of a file of a system. There is a fault about each that
// the system does not have, and about a file without any.
func readDocuments(system string, text []byte, notes *document.Notes) []document.Value {
	all, is := document.Read, isOf(system)
	if system == EKS {
		all = eks.Read
	}
	var some []document.Value
	documents := itemsOf(all(text, notes))
	for _, v := range documents {
		switch other := systemOfDocument(v); {
		case is(v):
			some = append(some, v)
		case other != "":
			otherSystem(notes, system, other)
		default:
			v.Fault("", "is nothing that --from %s converts%s", system, kindOf(v))
		}
	}
	if len(documents) > 0 {
		return some
	}
	if other := systemOf(text); other != "" && other != system {
		otherSystem(notes, system, other)
	} else if len(notes.Faults()) == 0 {
		notes.Fault("", "is empty")
	}
	return nil
}

// itemsOf returns documents, and the items of those that are lists of objects, as kubectl get prints them.
func itemsOf(documents []document.Value) []document.Value {
	var all []document.Value
	for _, v := range documents {
		if items := v.Peek("items"); v.Peek("kind").Raw() == "List" && items.Kind() == document.List {
			all = append(all, items.Elements()...)
			for _, path := range [][]string{
				{"apiVersion"},
				{"kind"},
				{"items"},
				{"metadata", "resourceVersion"},
				{"metadata", "selfLink"},
			} {
				v.Get(path...)
			}
			v.Unknown()
		} else {
			all = append(all, v)
		}
	}
	return all
}

// isOf returns the test for documents of a system.
func isOf(system string) func(document.Value) bool {
	return func(v document.Value) bool { return systemOfDocument(v) == system }
}

// systemOfDocument returns the system that a document is of; "" if it is of none.
func systemOfDocument(v document.Value) string {
	switch {
	case perftest.Is(v):
		return KubePerftest
	case kubebench.Is(v):
		return Kubebench
	case eks.Is(v):
		return EKS
	}
	return ""
}

// systemOf returns the system that the first document of a text is of; "" if it is of none.
func systemOf(text []byte) string {
	for _, v := range itemsOf(eks.Read(text, &document.Notes{})) {
		return systemOfDocument(v)
	}
	return ""
}

// kindOf returns the kind of an object in parentheses; nothing if it has none.
func kindOf(v document.Value) string {
	if kind := v.Peek("kind").Raw(); kind != "" {
		return fmt.Sprintf(": it has kind %q", kind)
	}
	return ""
}

// check parses the descriptors, whose faults are faults of the file.
func (r *Result) check() {
	for _, d := range r.Files {
		_, faults := parser.Parse(d.Name, []byte(d.Text))
		for _, f := range faults.Errors() {
			r.Faults = append(r.Faults, Note{
				Message: fmt.Sprintf("the descriptor that it becomes is refused: %s: %s", f.Path, f.Message), Remedy: f.Remedy,
			})
		}
	}
}

// fileName returns a name for the file of a descriptor that none of the others has.
func fileName(name string, others []File) string {
	base := draft.Label(strings.ReplaceAll(name, ".", "-"))
	if base == "" {
		base = "benchmark"
	}
	name = base
	for n := 2; taken(name, others); n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	return name
}

func taken(name string, others []File) bool {
	for _, d := range others {
		if strings.EqualFold(d.Name, name) {
			return true
		}
	}
	return false
}
