package sweep

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// EntryParameter is the name of the parameter that has the entry of a cell of a suite. No
// descriptor has such a key or parameter.
const EntryParameter = "suite.entry"

// A Member is a descriptor in a suite, after its values.
type Member struct {
	Name        string // no other member has it
	File        string // where the descriptor was read
	Text        []byte
	Plan        *Plan // of Text; nil if Text has no [sweep]
	Repetitions int   // of each cell: 1 or more
	Warmup      int
}

// Join returns the plan of a suite with these members, of which there is one or more. Its
// order is that of s; the numbers of runs in s are replaced by the largest of the members.
func Join(s descriptors.Sweep, members []Member) *Plan {
	entries := make([]entry, len(members))
	s.Repetitions, s.Warmup = 0, 0
	for i, m := range members {
		e := entry{name: m.Name, file: m.File, text: m.Text, cells: 1, warmup: m.Warmup, repetitions: m.Repetitions}
		if m.Plan != nil {
			e.grid, e.text, e.cells = m.Plan.entries[0].grid, m.Plan.entries[0].text, m.Plan.Cells()
		}
		s.Repetitions, s.Warmup = max(s.Repetitions, m.Repetitions), max(s.Warmup, m.Warmup)
		entries[i] = e
	}
	return newPlan(s, entries)
}

// Entries is the number of the entries of a suite; 0 for a sweep.
func (p *Plan) Entries() int {
	if p.entries[0].name == "" {
		return 0
	}
	return len(p.entries)
}

// File is where the descriptor of cell i of a suite was read; empty for a sweep.
func (p *Plan) File(i int) string {
	e, _ := p.entryOf(i)
	return e.file
}

// member is a cell of the entry's descriptor as a cell of the suite. The zero Cell is that of
// a descriptor without [sweep].
func (e *entry) member(c Cell) Cell {
	sum := sha256.Sum256([]byte(e.name + "/" + c.ID))
	name := e.name
	if c.Name != "" {
		name += "/" + c.Name
	}
	parameter := Parameter{Name: EntryParameter, Text: syntax.Quote(e.name), Value: e.name}
	return Cell{ID: hex.EncodeToString(sum[:])[:12], Name: name, Parameters: append([]Parameter{parameter}, c.Parameters...)}
}
