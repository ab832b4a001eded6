package benchstat

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// align says where a text stands in a wider column.
type align int

const (
	left align = iota
	center
	right
)

// piece is a text in one or more text columns, behind a margin. Where the
// columns are too narrow for it, the first one grows. A piece that overhangs
// leaves them as they are, and runs over its end.
type piece struct {
	column, span int
	margin, text string
	align        align
	overhangs    bool
}

// blank says whether nothing of the piece can be seen.
func (p piece) blank() bool {
	return strings.TrimSpace(p.margin+p.text) == ""
}

// single returns a piece in one text column, a space behind the one before.
func single(column int, text string, a align) piece {
	p := piece{column: column, span: 1, text: text, align: a}
	if column > 0 && text != "" {
		p.margin = " "
	}
	return p
}

// writeLines writes pieces in aligned columns. A gap to a piece whose column the
// one before it has run over is as wide as the part that runs over.
func writeLines(w *strings.Builder, lines [][]piece) {
	margins := marginWidths(lines)
	starts := columnStarts(lines, margins)
	for _, line := range lines {
		at := 0
		for _, p := range line {
			if p.blank() {
				continue
			}
			margin := margins[p.column]
			width := starts[p.column+p.span] - starts[p.column] - margin
			text := p.aligned(width)
			gap := starts[p.column] - at
			fmt.Fprintf(w, "%*s%*s%s", gap, "", margin, p.margin, text)
			at += gap + margin + utf8.RuneCountInString(text)
		}
		fmt.Fprintln(w)
	}
}

// aligned returns the text at its place in a column of a width. It is not
// filled up on its right.
func (p piece) aligned(width int) string {
	switch p.align {
	case center:
		return fmt.Sprintf("%*s%s", (width-utf8.RuneCountInString(p.text))/2, "", p.text)
	case right:
		return fmt.Sprintf("%*s", width, p.text)
	case left:
	}
	return p.text
}

// marginWidths returns the width of the margin of each text column.
func marginWidths(lines [][]piece) (widths []int) {
	for _, p := range slices.Concat(lines...) {
		for len(widths) < p.column+p.span {
			widths = append(widths, 0)
		}
		widths[p.column] = max(widths[p.column], utf8.RuneCountInString(p.margin))
	}
	return widths
}

// columnStarts returns where each text column begins, its margin included, and
// as the last where the table ends.
func columnStarts(lines [][]piece, margins []int) []int {
	widths := make([]int, len(margins))
	for _, narrow := range []bool{true, false} { // spans share the widths of single columns
		for _, p := range slices.Concat(lines...) {
			if p.overhangs || (p.span == 1) != narrow {
				continue
			}
			others := 0
			for _, width := range widths[p.column+1 : p.column+p.span] {
				others += width
			}
			needs := margins[p.column] + utf8.RuneCountInString(p.text) - others
			widths[p.column] = max(widths[p.column], needs)
		}
	}
	starts := []int{0}
	for i, width := range widths {
		starts = append(starts, starts[i]+width)
	}
	return starts
}
