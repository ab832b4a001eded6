package suite

import (
	"fmt"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/sweep"
	"github.com/benchmark-ai/bai/descriptors/values"
)

// mostFaults is the number of faults of entries after which no further one is read.
const mostFaults = 100

// members reads the entries of a suite.
type members struct {
	parser parser.Parser
	doc    *document
	texts  map[string]text // by the names that entries have

	readings map[string]*reading // by descriptor and values
	all      []sweep.Member
	first    *descriptors.Descriptor // of the first cell; with the code of the first entry that has some
	runs     int
	seen     map[parser.Fault]bool
	faults   parser.Faults
}

func newMembers(p parser.Parser, doc *document) *members {
	if !p.Accepted { // else it was within its bounds
		p.Budget = parser.NewBudget()
	}
	m := &members{
		parser: p, doc: doc, texts: make(map[string]text), readings: make(map[string]*reading), seen: make(map[parser.Fault]bool),
	}
	for _, t := range doc.suite.Descriptors {
		m.texts[t.Name] = t
	}
	return m
}

// read reads the entries, up to one with which the suite has too many faults or runs, or takes too much work.
func (m *members) read() {
	most := m.parser.RunLimit()
	for i, e := range m.doc.suite.Entries {
		m.entry(i, e)
		if m.runs > most {
			m.fault("suite.entries", fault.ManyRuns, fmt.Sprintf("has more than %d runs, the most that a set may have", most),
				"leave out entries or repetitions, or make several suites")
		}
		if len(m.faults) >= mostFaults || m.runs > most || m.parser.Budget.Spent() {
			return
		}
	}
}

// fault reports a fault of the suite.
func (m *members) fault(path, code, message, remedy string) {
	before := len(m.doc.report.Faults)
	m.doc.report.Fault(path, code, message, remedy)
	m.faults = append(m.faults, located(m.doc.file, m.doc.report.Faults[before:]...)...)
}

func (m *members) entry(i int, e entry) {
	source, ok := m.texts[e.Descriptor]
	if !ok {
		m.fault(entryPath(i)+".descriptor", fault.NoText, fmt.Sprintf("%q has no text here", e.Descriptor),
			"submit the suite with baictl, which reads its descriptors, or give the text in [[suite.descriptors]]")
		return
	}
	var over []values.Value
	if e.Values.table != nil {
		over = values.Of(m.doc.file, m.doc.body, e.Values.table)
	}
	r, ok := m.reading(source, values.Overrides(over))
	if !ok {
		m.fault(entryPath(i)+".descriptor", fault.ManyRuns,
			fmt.Sprintf("reading %s and the descriptors of the entries before it takes more than is done for a suite", source.file()),
			"leave out entries or values, or make several suites")
		return
	}
	m.add(e.Name, r.faults, over)
	if r.descriptor == nil {
		return
	}
	if s := r.descriptor.Sweep; s != nil && s.StopWhen != nil {
		m.fault(entryPath(i)+".descriptor", fault.EntryStops, fmt.Sprintf("%s has sweep.stop_when, which no suite has", source.file()),
			"submit it on its own, or give it repetitions in place of stop_when")
		return
	}
	m.member(i, e, r)
}

// add adds faults of the descriptor of an entry, each once. Those of values name the entry.
func (m *members) add(name string, faults parser.Faults, over []values.Value) {
	for _, f := range faults {
		if at := values.Locate(f, over); at.File != f.File {
			f = at
			f.Message = fmt.Sprintf("in entry %s: %s", name, f.Message)
		}
		if !m.seen[f] {
			m.seen[f] = true
			m.faults = append(m.faults, f)
		}
	}
}

// member adds the member for an entry. The entry's own numbers of runs win over those of its
// descriptor, and these over the suite's.
func (m *members) member(i int, e entry, r *reading) {
	one := sweep.Member{Name: e.Name, File: r.file, Text: r.effective, Plan: r.plan}
	one.Repetitions, one.Warmup = m.doc.suite.Repetitions, m.doc.suite.Warmup
	if r.repetitions {
		one.Repetitions = r.descriptor.Sweep.Repetitions
	}
	if r.warmup {
		one.Warmup = r.descriptor.Sweep.Warmup
	}
	if m.doc.report.Has(entryPath(i) + ".repetitions") {
		one.Repetitions = e.Repetitions
	}
	if m.doc.report.Has(entryPath(i) + ".warmup") {
		one.Warmup = e.Warmup
	}
	m.all = append(m.all, one)
	m.runs += r.cells() * (one.Repetitions + one.Warmup)
	m.keepFirst(r.descriptor)
}

// keepFirst keeps the first descriptor, and the code of the first one that wants some.
func (m *members) keepFirst(d *descriptors.Descriptor) {
	wantsCode := func(d *descriptors.Descriptor) bool { return d.ML != nil && d.ML.Script != nil }
	switch {
	case m.first == nil:
		one := *d
		m.first = &one
	case wantsCode(d) && !wantsCode(m.first):
		m.first.ML = d.ML
	}
}

// receivers finds the receivers of the suite that the platform does not have.
func (m *members) receivers() {
	for i, name := range m.doc.suite.Notify {
		if message, remedy, unknown := m.parser.UnknownReceiver(name); unknown {
			m.fault(fmt.Sprintf("suite.notify[%d]", i), fault.NoReceiver, message, remedy)
		}
	}
}
