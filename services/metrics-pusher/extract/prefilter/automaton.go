package prefilter

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// automaton is a deterministic automaton that reads a text once, and reports whether a pattern may match somewhere in it. It reports true
// for each text that the pattern matches, and for few others: it passes word boundaries and ends of lines everywhere, and takes all
// characters beyond ASCII for one. It is much faster than a regular expression that has no text to search for. Several goroutines may use
// it. The nil automaton reports true.
type automaton struct {
	class [256]uint8 // of a byte: bytes that all parts of the pattern treat alike have one class
	next  []uint16   // the row of the state that follows a row and a class
	ends  []bool     // by row: the pattern may match at the end of the text
}

// Limits of an automaton. A pattern that needs a larger one has none.
const (
	maxInstructions = 1 << 11
	maxSteps        = 1 << 18 // to make it
	maxTable        = 1 << 15 // entries of next
)

// foundRow stands for the state in which the pattern has matched.
const foundRow = 1<<16 - 1

// other stands for each character beyond ASCII.
const other = utf8.RuneSelf

// newAutomaton returns the automaton of a pattern, or nil if it would be too large, or would always report true.
func newAutomaton(pattern string) *automaton {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil || len(prog.Inst) > maxInstructions {
		return nil
	}
	m := &determinizer{prog: prog, rows: make(map[string]uint16), seen: make([]bool, len(prog.Inst))}
	return m.run()
}

// mayMatch reports whether the pattern may match in a text.
func (a *automaton) mayMatch(text string) bool {
	if a == nil {
		return true
	}
	row := uint16(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= utf8.RuneSelf {
			_, n := utf8.DecodeRuneInString(text[i:])
			i += n - 1
		}
		if row = a.next[int(row)+int(a.class[c])]; row == foundRow {
			return true
		}
	}
	return a.ends[row]
}

// determinizer makes an automaton by the construction of subsets. A state is a set of instructions of the program: those that read a
// character, and those that wait for the end of the text.
type determinizer struct {
	prog    *syntax.Prog
	rows    map[string]uint16 // by state
	states  [][]uint32        // in the order of rows
	classes []rune            // a character of each class
	restart []uint32          // instructions at which a match may begin anywhere but at the beginning of the text
	seen    []bool            // of closure
	steps   int
	a       automaton
}

func (m *determinizer) run() *automaton {
	m.classify()
	start := m.closure(nil, []uint32{uint32(m.prog.Start)}, true, false)         //nolint:gosec // at most maxInstructions
	m.restart = m.closure(nil, []uint32{uint32(m.prog.Start)}, false, false)     //nolint:gosec // likewise
	if row, ok := m.row(slices.Compact(sorted(start))); !ok || row == foundRow { // it matches the empty text
		return nil
	}
	for i := 0; i < len(m.states); i++ {
		for class, c := range m.classes {
			row, ok := m.row(m.step(m.states[i], c))
			if !ok {
				return nil
			}
			m.a.next[i*len(m.classes)+class] = row
		}
	}
	return &m.a
}

// step returns the state that follows a state and a character.
func (m *determinizer) step(state []uint32, c rune) []uint32 {
	var reached []uint32
	for _, pc := range state {
		if inst := &m.prog.Inst[pc]; inst.Op != syntax.InstEmptyWidth && reads(inst, c) {
			reached = append(reached, inst.Out)
		}
	}
	return slices.Compact(sorted(m.closure(slices.Clone(m.restart), reached, false, false)))
}

// row returns the row of a state, which is new at first. It is false if the automaton becomes too large.
func (m *determinizer) row(state []uint32) (row uint16, ok bool) {
	if slices.ContainsFunc(state, func(pc uint32) bool { return m.prog.Inst[pc].Op == syntax.InstMatch }) {
		return foundRow, true
	}
	key := make([]byte, 0, 2*len(state))
	for _, pc := range state {
		key = append(key, byte(pc), byte(pc>>8))
	}
	if row, ok = m.rows[string(key)]; ok {
		return row, true
	}
	if len(m.a.next)+len(m.classes) > maxTable || m.steps > maxSteps {
		return 0, false
	}
	row = uint16(len(m.a.next)) //nolint:gosec // at most maxTable
	m.rows[string(key)], m.states = row, append(m.states, state)
	m.a.next = append(m.a.next, make([]uint16, len(m.classes))...)
	ends := make([]bool, len(m.classes))
	ends[0] = slices.ContainsFunc(m.closure(nil, state, true, true), func(pc uint32) bool { return m.prog.Inst[pc].Op == syntax.InstMatch })
	m.a.ends = append(m.a.ends, ends...)
	return row, true
}

// closure appends to dst the instructions that read a character, match, or wait for the end of the text, and that can be reached from some
// without reading. Begin and end say whether the place is the beginning or the end of the text.
func (m *determinizer) closure(dst, from []uint32, begin, end bool) []uint32 {
	clear(m.seen)
	for open := slices.Clone(from); len(open) > 0; {
		pc := open[len(open)-1]
		if open = open[:len(open)-1]; m.seen[pc] {
			continue
		}
		m.seen[pc] = true
		m.steps++
		inst := &m.prog.Inst[pc]
		switch op := syntax.EmptyOp(inst.Arg); inst.Op { //nolint:exhaustive // the others read a character or match
		case syntax.InstFail:
		case syntax.InstAlt, syntax.InstAltMatch:
			open = append(open, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			open = append(open, inst.Out)
		case syntax.InstEmptyWidth:
			switch {
			case op&syntax.EmptyBeginText != 0 && !begin:
			case op&syntax.EmptyEndText != 0 && !end:
				dst = append(dst, pc)
			default:
				open = append(open, inst.Out)
			}
		default:
			dst = append(dst, pc)
		}
	}
	return dst
}

// classify gives characters that no instruction tells apart one class.
func (m *determinizer) classify() {
	classes := make(map[string]uint8)
	for c := range rune(other + 1) {
		var key []byte
		for i := range m.prog.Inst {
			if reads(&m.prog.Inst[i], c) {
				key = append(key, byte(i), byte(i>>8))
			}
		}
		class, ok := classes[string(key)]
		if !ok {
			class = uint8(len(classes)) //nolint:gosec // at most other + 1
			classes[string(key)], m.classes = class, append(m.classes, c)
		}
		m.a.class[c] = class
	}
	for c := other; c < len(m.a.class); c++ {
		m.a.class[c] = m.a.class[other]
	}
}

// reads reports whether an instruction reads a character, or any beyond ASCII for other.
func reads(inst *syntax.Inst, c rune) bool {
	switch inst.Op { //nolint:exhaustive // the others read nothing
	case syntax.InstRuneAny:
		return true
	case syntax.InstRuneAnyNotNL:
		return c != '\n'
	case syntax.InstRune, syntax.InstRune1:
		if c < other {
			return inst.MatchRune(c)
		}
		return readsOther(inst)
	}
	return false
}

// readsOther reports whether an instruction reads any character beyond ASCII.
func readsOther(inst *syntax.Inst) bool {
	last := inst.Rune[len(inst.Rune)-1]
	if last >= other || len(inst.Rune) > 1 || syntax.Flags(inst.Arg)&syntax.FoldCase == 0 {
		return last >= other
	}
	for r := unicode.SimpleFold(last); r != last; r = unicode.SimpleFold(r) {
		if r >= other {
			return true
		}
	}
	return false
}

func sorted(pcs []uint32) []uint32 {
	slices.Sort(pcs)
	return pcs
}
