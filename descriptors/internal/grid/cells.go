package grid

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

const (
	maxExcludes = 1000 // rows
	maxName     = 120  // bytes of a cell's name
	maxContent  = 32   // bytes of a value in it
	idBytes     = 6
	maxEqual    = 10 // equal cells that are reported
)

// count counts combinations. There are none without an axis.
func (r *reader) count() {
	n := min(len(r.g.axes), 1)
	for _, a := range r.g.axes {
		if n *= len(a); n > r.g.source.MostRuns {
			r.many(fmt.Sprintf("has more than %d combinations, the most that are taken", r.g.source.MostRuns))
			return
		}
	}
	r.g.combinations = uint32(n) //nolint:gosec // at most MostRuns
}

func (r *reader) many(message string) {
	r.fault(r.g.source.Tree.Get("sweep").At, "sweep", fault.ManyRuns, message, "leave out values or repetitions, or make several sets")
}

// exclude finds the cells that no row of exclude has.
func (r *reader) exclude() {
	if n := len(r.g.exclude); n > maxExcludes {
		r.fault(r.g.exclude[maxExcludes].at, "sweep.exclude", fault.BadSweep,
			fmt.Sprintf("has %d rows; %d at most are taken", n, maxExcludes), "")
		return
	}
	all := int(r.g.combinations) + len(r.g.explicit)
	if !r.g.source.Budget.match(all * (1 + len(r.g.exclude))) {
		r.many("with its exclude and the entries before it the suite has more combinations than are compared")
		return
	}
	matched := make([]bool, len(r.g.exclude))
	given := make([]int, len(r.g.parameters))
	var choices []choice
	for cell := range all {
		choices = r.g.choices(uint32(cell), choices[:0]) //nolint:gosec // at most MostRuns and the rows of a file
		for i := range given {
			given[i] = -1
		}
		for _, c := range choices {
			given[c.parameter] = c.value
		}
		if !r.excluded(given, matched) {
			r.g.cells = append(r.g.cells, uint32(cell)) //nolint:gosec // likewise
		}
	}
	for i, one := range r.g.exclude {
		if !matched[i] {
			r.warn(one.at, one.keyPath, fault.NotExcluded, "leaves out no cell", "no cell has all of these values")
		}
	}
	if len(r.g.cells) == 0 {
		r.fault(r.g.source.Tree.Get("sweep").At, "sweep", fault.NoCells, "exclude leaves out all cells", "take a row out of exclude")
	}
}

// excluded reports whether a cell has all values of a row, and notes which rows do.
func (r *reader) excluded(given []int, matched []bool) bool {
	found := false
	for i, one := range r.g.exclude {
		if one.matches(given) {
			matched[i], found = true, true
		}
	}
	return found
}

func (r row) matches(given []int) bool {
	for _, c := range r.choices {
		if c.value < 0 || given[c.parameter] != c.value {
			return false
		}
	}
	return true
}

// identify finds equal cells, and those that share a name.
func (r *reader) identify() {
	r.g.ambiguous = map[uint32]bool{}
	ids, names := map[[idBytes]byte]uint32{}, map[uint64]uint32{}
	var choices []choice
	equal := 0
	for _, cell := range r.g.cells {
		choices = r.g.choices(cell, choices[:0])
		id := r.g.id(choices)
		if first, ok := ids[id]; ok {
			if equal++; equal <= maxEqual {
				r.equal(cell, first)
			}
			continue
		}
		ids[id] = cell
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(cut(r.g.name(choices), maxName))) // a hash takes every text
		if first, ok := names[hash.Sum64()]; ok {
			r.g.ambiguous[first], r.g.ambiguous[cell] = true, true
			continue
		}
		names[hash.Sum64()] = cell
	}
}

// equal reports a cell that has the values of an earlier one, at its last value.
func (r *reader) equal(cell, first uint32) {
	at, keyPath := r.g.source.Tree.Get("sweep").At, "sweep"
	if cell >= r.g.combinations {
		one := r.g.explicit[cell-r.g.combinations]
		at, keyPath = one.at, one.keyPath
	} else if c, ok := r.g.repeated(cell, first); ok {
		at, keyPath = c.at, r.g.parameters[c.parameter].keyPath
	}
	r.fault(at, keyPath, fault.EqualCells, fmt.Sprintf("the cell %s is there already", cut(r.g.name(r.g.choices(cell, nil)), maxName)),
		"keep one of the two; for more runs of a cell raise repetitions")
}

// repeated is the first choice of a combination that is another one in an equal combination.
func (g *Grid) repeated(cell, first uint32) (choice, bool) {
	others := g.choices(first, nil)
	for i, c := range g.choices(cell, nil) {
		if c.at != others[i].at {
			return c, true
		}
	}
	return choice{}, false
}

// id is the beginning of the digest over the lines name=value of the choices, sorted.
func (g *Grid) id(choices []choice) [idBytes]byte {
	given := g.given(choices)
	lines := make([]byte, 0, 256)
	for _, i := range g.byName {
		if v := given[i]; v != nil {
			lines = append(lines, g.parameters[i].name...)
			lines = append(lines, '=')
			lines = append(lines, v.text...)
			lines = append(lines, '\n')
		}
	}
	sum := sha256.Sum256(lines)
	return [idBytes]byte(sum[:idBytes])
}

// uniqueName is the name of a cell. A cell that would have the name of another one has its
// ID behind it and #, with which no value ends.
func (g *Grid) uniqueName(cell uint32, choices []choice) string {
	name := g.name(choices)
	if !g.ambiguous[cell] {
		return cut(name, maxName)
	}
	id := g.id(choices)
	suffix := "#" + hex.EncodeToString(id[:])
	return cut(name, maxName-len(suffix)) + suffix
}

// name has all choices. Only a row of explicit has none.
func (g *Grid) name(choices []choice) string {
	if len(choices) == 0 {
		return "defaults"
	}
	var s strings.Builder
	for i, c := range choices {
		if i > 0 {
			s.WriteByte(',')
		}
		s.WriteString(g.parameters[c.parameter].label)
		s.WriteByte('=')
		s.WriteString(g.value(c).short())
	}
	return s.String()
}

// short is v for people.
func (v *value) short() string {
	switch {
	case v.node.Kind != syntax.String:
		return cut(v.text, maxContent)
	case strings.ContainsFunc(v.content, func(c rune) bool { return c == '#' || !unicode.IsPrint(c) }):
		return cut(strconv.Quote(v.content), maxContent)
	}
	return cut(v.content, maxContent)
}

// cut is the beginning of s, where s has more than most bytes.
func cut(s string, most int) string {
	const more = "…"
	if len(s) <= most {
		return s
	}
	end := most - len(more)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + more
}
