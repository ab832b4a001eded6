package benchstat

import (
	"fmt"
	"math"
	"strings"

	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchunit"
)

// A column of a table is a group of text columns: three for the center, its
// range and their footnotes, and three more, which the first group lacks, for
// the difference to the base, its probability and their footnotes. The names
// of the benchmarks are in text column 0.
const (
	halfGroup = 3
	group     = 2 * halfGroup
)

// groupStart returns the first text column of the i-th group.
func groupStart(i int) int {
	if i == 0 {
		return 1
	}
	return 1 + halfGroup + (i-1)*group
}

// footnotes are the warnings below a table, each once.
type footnotes []string

// mark returns the marks that refer to the warnings, and adds those that are new.
func (f *footnotes) mark(warnings ...error) string {
	var marks []string
	for _, w := range warnings {
		marks = append(marks, superscript(f.number(w.Error())))
	}
	return strings.Join(marks, " ")
}

// number returns the number of a warning, from 1.
func (f *footnotes) number(text string) int {
	for i, known := range *f {
		if known == text {
			return i + 1
		}
	}
	*f = append(*f, text)
	return len(*f)
}

// superscript writes a number in small raised digits.
func superscript(n int) string {
	raised := []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")
	return strings.Map(func(digit rune) rune { return raised[digit-'0'] }, fmt.Sprint(n))
}

// writeTable writes a table and its footnotes.
func writeTable(w *strings.Builder, t table) {
	var notes footnotes
	lines := [][]piece{t.labels(), t.units()}
	class := benchunit.ClassOf(t.unit)
	for _, r := range t.rows {
		lines = append(lines, r.pieces(class, &notes))
	}
	if len(t.rows) > 1 {
		lines = append(lines, t.summary(class, &notes))
	}
	writeLines(w, lines)
	for i, text := range notes {
		fmt.Fprintf(w, "%s %s\n", superscript(i+1), text)
	}
}

// labels is the line that names the columns.
func (t table) labels() (line []piece) {
	for i, label := range t.columns {
		start := groupStart(i)
		span := groupStart(i+1) - start
		line = append(line, piece{column: start, span: span, margin: " │ ", text: label, align: center})
	}
	return append(line, t.edge())
}

// units is the line below it.
func (t table) units() (line []piece) {
	for i := range t.columns {
		start := groupStart(i)
		line = append(line, piece{column: start, span: halfGroup, margin: " │ ", text: t.unit, align: center})
		if i > 0 {
			line = append(line, piece{column: start + halfGroup, span: halfGroup, margin: "  ", text: "vs base", overhangs: true})
		}
	}
	return append(line, t.edge())
}

// edge is the right end of the first two lines.
func (t table) edge() piece {
	return piece{column: groupStart(len(t.columns)), span: 1, margin: " │"}
}

// pieces is the line of a benchmark. All its centers have one scale.
func (r row) pieces(class benchunit.Class, notes *footnotes) []piece {
	var present []*estimate
	for _, e := range r.estimates {
		if e != nil {
			present = append(present, e)
		}
	}
	scale := benchunit.CommonScale(centers(present), class)
	line := []piece{single(0, r.name, left)}
	for i, e := range r.estimates {
		if e != nil {
			line = append(line, e.pieces(groupStart(i), scale, notes)...)
		}
	}
	return line
}

// pieces are those of an estimate's group.
func (e *estimate) pieces(start int, scale benchunit.Scaler, notes *footnotes) []piece {
	all := []piece{
		single(start, scale.Format(e.summary.Center), right),
		{column: start + 1, span: 1, margin: " ± ", text: e.summary.PctRangeString(), align: right},
		single(start+2, notes.mark(e.summary.Warnings...), left),
	}
	if e.base == nil {
		return all
	}
	return append(all, comparison(start+halfGroup, e.base.summary.Center, e.summary.Center, e.comparison, notes)...)
}

// comparison are the pieces of a group's second half.
func comparison(start int, base, value float64, c benchmath.Comparison, notes *footnotes) []piece {
	return []piece{
		single(start, c.FormatDelta(base, value), right),
		single(start+1, "("+c.String()+")", left),
		single(start+2, notes.mark(c.Warnings...), left),
	}
}

// summary is the line of the geometric means.
func (t table) summary(class benchunit.Class, notes *footnotes) []piece {
	line := []piece{single(0, "geomean", left)}
	for i, m := range t.means {
		start := groupStart(i)
		if !math.IsNaN(m.center) {
			line = append(line, single(start, benchunit.Scale(m.center, class), right))
		}
		switch {
		case i == 0: // the base has nothing to be compared with
		case !math.IsNaN(m.ratio):
			line = append(line, single(start+halfGroup, fmt.Sprintf("%+.2f%%", (m.ratio-1)*100), right))
		default:
			line = append(line, single(start+halfGroup, "?", left))
		}
		line = append(line, single(groupStart(i+1)-1, notes.mark(m.warnings...), left))
	}
	return line
}
