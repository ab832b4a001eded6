// Package suite reads suites: TOML files with a table [suite], which lists descriptors with
// values laid over each of them, and is one set of runs. It is pure: the same text always
// has the same cells, names, IDs and order.
//
// A suite names its descriptors. Its text is complete, and can be read without anything
// else, once the texts of all of them follow in [[suite.descriptors]]: see References and
// Embed.
package suite

import (
	"bytes"
	"maps"
	"slices"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/sweep"
)

const (
	// MaxSize is the size in bytes of a complete text above which a suite is refused.
	MaxSize = 768 << 10

	// MaxEntries is the number of entries above which a suite is refused.
	MaxEntries = 1000

	mark = "\ufeff" // of UTF-8, with which a text may begin
)

// Is reports whether a text is a suite and no descriptor.
func Is(text []byte) bool {
	if !bytes.Contains(text, []byte("suite")) || len(text) > MaxSize {
		return false
	}
	tree, _ := syntax.Parse(bytes.TrimPrefix(text, []byte(mark)))
	return tree.Get("suite") != nil
}

// Parse reads a complete text. Like that of a descriptor with [sweep], the result is the
// descriptor of the first cell, with the description, the labels, the schedule and the sweep
// of the suite. Faults of the suite and of values in it have their places in file, and those
// of a descriptor have theirs in the file that the suite has for it. Descriptor and plan are
// nil if one of the faults is an error.
func Parse(p parser.Parser, file string, text []byte) (*descriptors.Descriptor, *sweep.Plan, parser.Faults) {
	doc, faults := read(file, text)
	if len(faults.Errors()) > 0 {
		return nil, nil, faults
	}
	m := newMembers(p, doc)
	m.receivers()
	m.read()
	faults = slices.Concat(faults, m.faults)
	if len(faults.Errors()) > 0 {
		return nil, nil, faults
	}
	plan := sweep.Join(doc.sweep(), m.all)
	d := *m.first
	d.Info.Description, d.Info.Scheduling, d.Info.Timezone = doc.suite.Description, doc.suite.Scheduling, doc.suite.Timezone
	d.Info.Labels, d.Info.Notify, d.Schedule = doc.labels(), doc.suite.Notify, doc.suite.Schedule
	table := plan.Sweep()
	d.Sweep = &table
	return &d, plan, faults
}

// ParseWith reads a suite with Parse, or else a descriptor with p.ParseWith. No override can
// be put into a suite.
func ParseWith(p parser.Parser, file string, text []byte, set []parser.Override) (*descriptors.Descriptor, []byte, parser.Faults) {
	if !Is(text) {
		return p.ParseWith(file, text, set)
	}
	d, _, faults := Parse(p, file, text)
	for _, o := range set {
		faults = append(faults, parser.Fault{
			File: "--set " + o.Path, Line: 1, Column: 1, Path: o.Path, Code: fault.Override,
			Message: "cannot be put into a suite", Remedy: "write it into the values of an entry, or into [suite]",
		})
	}
	if len(set) > 0 {
		return nil, nil, faults
	}
	return d, text, faults
}

// ReadPlan reads the plan of a suite, or of a descriptor with [sweep] as sweep.Read does.
func ReadPlan(p parser.Parser, file string, text []byte) (*sweep.Plan, parser.Faults) {
	if !Is(text) {
		return sweep.Read(p, file, text)
	}
	_, plan, faults := Parse(p, file, text)
	return plan, faults
}

// document is a suite as it was read.
type document struct {
	file   string
	body   []byte
	suite  table
	report *decode.Report
}

// read reads a text, and finds the faults that it has whatever its descriptors are.
func read(file string, text []byte) (*document, parser.Faults) {
	if f, bad := decode.Unreadable(text, MaxSize); bad {
		return nil, located(file, f)
	}
	doc := &document{file: file, body: bytes.Clone(bytes.TrimPrefix(text, []byte(mark)))}
	tree, broken := syntax.Parse(doc.body)
	if len(broken) > 0 {
		return nil, located(file, decode.Broken(broken)...)
	}
	var f struct {
		SpecVersion string `toml:"spec_version" one:"1.0"`
		Suite       table  `toml:"suite" need:"yes"`
	}
	doc.report = decode.Decode(tree, &f, valueTypes())
	doc.suite = f.Suite
	check{doc, doc.report}.all()
	return doc, located(file, doc.report.Faults...)
}

// located are faults of a file in the order of their places.
func located(file string, found ...decode.Fault) parser.Faults {
	all := make(parser.Faults, len(found))
	for i, f := range found {
		all[i] = parser.Fault{
			File: file, Line: f.At.Line, Column: f.At.Column, Path: f.Path, Code: f.Code,
			Message: f.Message, Remedy: f.Remedy, Warning: f.Warning,
		}
	}
	slices.SortStableFunc(all, func(a, b parser.Fault) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return all
}

// sweep is the order and the limits of the set.
func (d *document) sweep() descriptors.Sweep {
	s := d.suite
	return descriptors.Sweep{Order: s.Order, Seed: s.Seed, MaxParallel: s.MaxParallel, OnFailure: s.OnFailure}
}

// nameLabel is the label that has the name of a suite.
const nameLabel = "suite"

// labels are those of the set and of all of its runs.
func (d *document) labels() map[string]string {
	all := map[string]string{nameLabel: d.suite.Name}
	maps.Copy(all, d.suite.Labels)
	return all
}
