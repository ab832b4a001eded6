package suite

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/sweep"
)

// reading is a descriptor with some values laid over it, as it was read. Entries with the same values share it.
type reading struct {
	file       string
	effective  []byte
	descriptor *descriptors.Descriptor // nil if one of the faults is an error
	plan       *sweep.Plan             // nil without [sweep]
	faults     parser.Faults

	repetitions, warmup bool // whether its [sweep] has them
}

// reading returns the descriptor of a text with values laid over it. It is false where the budget for the suite is spent.
func (m *members) reading(source text, over []parser.Override) (*reading, bool) {
	var key strings.Builder
	fmt.Fprintf(&key, "%q", source.Name)
	for _, o := range over {
		fmt.Fprintf(&key, " %q=%q", o.Path, o.Value)
	}
	if r, known := m.readings[key.String()]; known {
		return r, true
	}
	const perText, perValue = 3, 4 // times that the text is read
	if !m.parser.Budget.Read(len(source.Text) * (perText + perValue*min(len(over), parser.MaxOverrides))) {
		return nil, false
	}
	r := &reading{file: source.file()}
	r.descriptor, r.effective, r.faults = m.parser.ParseWith(r.file, []byte(source.Text), over)
	if r.descriptor != nil && r.descriptor.Sweep != nil {
		p := m.parser
		p.Accepted, p.Budget = true, nil // all cells were checked
		r.plan, _ = sweep.Read(p, r.file, r.effective)
		tree, _ := syntax.Parse(bytes.TrimPrefix(r.effective, []byte(mark)))
		r.repetitions, r.warmup = tree.Get("sweep").Get("repetitions") != nil, tree.Get("sweep").Get("warmup") != nil
	}
	m.readings[key.String()] = r
	return r, true
}

// cells is how many cells the descriptor has.
func (r *reading) cells() int {
	if r.plan == nil {
		return 1
	}
	return r.plan.Cells()
}
