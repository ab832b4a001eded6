package suite

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
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

	all    []sweep.Member
	first  *descriptors.Descriptor // of the first cell; with the code of the first entry that has some
	runs   int
	seen   map[parser.Fault]bool
	faults parser.Faults
}

func newMembers(p parser.Parser, doc *document) *members {
	m := &members{parser: p, doc: doc, texts: make(map[string]text), seen: make(map[parser.Fault]bool)}
	for _, t := range doc.suite.Descriptors {
		m.texts[t.Name] = t
	}
	return m
}

func (m *members) read() {
	for i, e := range m.doc.suite.Entries {
		m.entry(i, e)
		if len(m.faults) >= mostFaults {
			return
		}
	}
	if most := m.parser.RunLimit(); m.runs > most {
		m.fault("suite.entries", fault.ManyRuns, fmt.Sprintf("has %d runs, and a set may have %d", m.runs, most),
			"leave out entries or repetitions, or make several suites")
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
	file := cmp.Or(source.File, source.Name)
	d, effective, faults := m.parser.ParseWith(file, []byte(source.Text), values.Overrides(over))
	m.add(e.Name, faults, over)
	if d == nil {
		return
	}
	if d.Sweep != nil && d.Sweep.StopWhen != nil {
		m.fault(entryPath(i)+".descriptor", fault.EntryStops, fmt.Sprintf("%s has sweep.stop_when, which no suite has", file),
			"submit it on its own, or give it repetitions in place of stop_when")
		return
	}
	m.member(i, e, file, effective, d)
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
func (m *members) member(i int, e entry, file string, effective []byte, d *descriptors.Descriptor) {
	suite := m.doc.suite
	one := sweep.Member{Name: e.Name, File: file, Text: effective, Repetitions: suite.Repetitions, Warmup: suite.Warmup}
	cells := 1
	if d.Sweep != nil {
		p := m.parser
		p.Accepted = true // all cells were checked
		one.Plan, _ = sweep.Read(p, file, effective)
		cells = one.Plan.Cells()
		one.Repetitions, one.Warmup = ownRuns(effective, *d.Sweep, suite)
	}
	if m.doc.report.Has(entryPath(i) + ".repetitions") {
		one.Repetitions = e.Repetitions
	}
	if m.doc.report.Has(entryPath(i) + ".warmup") {
		one.Warmup = e.Warmup
	}
	m.all = append(m.all, one)
	m.runs += cells * (one.Repetitions + one.Warmup)
	m.keepFirst(d)
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

// ownRuns are the numbers of runs that the [sweep] of a descriptor has, and else those of the
// suite.
func ownRuns(text []byte, own descriptors.Sweep, suite table) (repetitions, warmup int) {
	tree, _ := syntax.Parse(bytes.TrimPrefix(text, []byte(mark)))
	repetitions, warmup = suite.Repetitions, suite.Warmup
	if tree.Get("sweep").Get("repetitions") != nil {
		repetitions = own.Repetitions
	}
	if tree.Get("sweep").Get("warmup") != nil {
		warmup = own.Warmup
	}
	return repetitions, warmup
}

// receivers finds the receivers of the suite that the platform does not have.
func (m *members) receivers() {
	for i, name := range m.doc.suite.Notify {
		if message, remedy, unknown := m.parser.UnknownReceiver(name); unknown {
			m.fault(fmt.Sprintf("suite.notify[%d]", i), fault.NoReceiver, message, remedy)
		}
	}
}
