package suite

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

// A Reference is a descriptor that a suite names and whose text it does not have.
type Reference struct {
	Name string // as the suite has it

	doc   *document
	entry int // the first one that names it
}

// References returns the descriptors of a suite that have no text in it, each once. It
// returns none if the faults of the suite itself have an error.
func References(file string, body []byte) ([]Reference, parser.Faults) {
	doc, faults := read(file, body)
	if len(faults.Errors()) > 0 {
		return nil, faults
	}
	var all []Reference
	for i, e := range doc.suite.Entries {
		known := slices.ContainsFunc(doc.suite.Descriptors, func(t text) bool { return t.Name == e.Descriptor }) ||
			slices.ContainsFunc(all, func(r Reference) bool { return r.Name == e.Descriptor })
		if !known {
			all = append(all, Reference{e.Descriptor, doc, i})
		}
	}
	return all, nil
}

// Fault is the fault of a reference whose text cannot be read. The message goes on after the
// name of the descriptor.
func (r Reference) Fault(message string) parser.Fault {
	before := len(r.doc.report.Faults)
	r.doc.report.Fault(entryPath(r.entry)+".descriptor", fault.NoText, fmt.Sprintf("%q %s", r.Name, message), "")
	return located(r.doc.file, r.doc.report.Faults[before:]...)[0]
}

// A Source is the text of a descriptor that a suite names.
type Source struct {
	Name string // as the suite has it
	File string // where it was read, for faults
	Text []byte
}

// Embed returns the text of a suite with the texts of its descriptors behind it. All places
// in the suite stay. The fault is that of a source that is no text, of a suite that is too
// large with all of them, or of one to which TOML lets nothing be added.
func Embed(file string, suite []byte, sources []Source) ([]byte, parser.Faults) {
	var out strings.Builder
	out.Write(suite)
	out.WriteString("\n")
	for _, s := range sources {
		if f, bad := decode.Unreadable(s.Text, parser.MaxSize); bad {
			return nil, located(s.File, f)
		}
		fmt.Fprintf(&out, "\n[[suite.descriptors]]\nname = %s\nfile = %s\ntext = %s\n", syntax.Quote(s.Name), syntax.Quote(s.File),
			syntax.Quote(string(s.Text)))
	}
	if out.Len() > MaxSize {
		return nil, located(file, decode.Fault{
			At: syntax.Position{Line: 1, Column: 1}, Code: fault.TooLarge,
			Message: fmt.Sprintf("with the texts of its descriptors the suite is larger than %d KiB, the most that is taken", MaxSize>>10),
			Remedy:  "make several suites",
		})
	}
	if f, bad := closed(suite, out.String()); bad && len(sources) > 0 {
		return nil, located(file, f)
	}
	return []byte(out.String()), nil
}

// closed returns the fault of a suite that is TOML, and is none any more with [[suite.descriptors]] behind it.
func closed(suite []byte, embedded string) (decode.Fault, bool) {
	alone, broken := syntax.Parse(bytes.TrimPrefix(suite, []byte(mark)))
	if len(broken) > 0 {
		return decode.Fault{}, false
	}
	_, broken = syntax.Parse([]byte(strings.TrimPrefix(embedded, mark)))
	if len(broken) == 0 {
		return decode.Fault{}, false
	}
	table := alone.Get("suite")
	if list := table.Get("descriptors"); list != nil {
		return decode.Fault{
			At: list.At, Path: "suite.descriptors", Code: decode.Code(broken[0]), Message: "is a list in brackets, to which no text can be added",
			Remedy: "write [[suite.descriptors]] for each of its tables",
		}, true
	}
	return decode.Fault{
		At: table.At, Path: "suite", Code: decode.Code(broken[0]), Message: "has no header, so that the texts of its descriptors cannot be added to it",
		Remedy: "write [suite], and its keys on lines below",
	}, true
}
