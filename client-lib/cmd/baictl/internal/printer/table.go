package printer

import (
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

const (
	gap       = 2 // spaces between columns
	narrowest = 6 // to which a column is cut

	narrowestText = 24 // that is worth wrapping
)

// A Column of a table.
type Column struct {
	Title    string
	Right    bool // to the right, as numbers are
	Flex     bool // may be cut where the terminal is narrow
	Wrap     bool // is broken between words rather than cut; only the last one
	Least    int  // as wide at least
	Optional bool // left out where the terminal is narrow, the last one first
}

// A Table is text in columns, which know how wide characters are.
type Table struct {
	Columns []Column
	Rows    [][]string
	// Paint, if not nil, colours a cell that has its final width.
	Paint func(row, column int, text string) string
}

// Widths of text.
const (
	Page    = 80      // where there is no terminal
	Unbound = 1 << 20 // where nothing is cut or wrapped
)

// Render is the table for a terminal so many cells wide. 0 means that there is
// none: a page's width, but nothing is cut. Columns that wrap are broken between
// words, never within one. Empty cells are "-".
func (t Table) Render(width int) string {
	if column := t.optional(width); column >= 0 {
		return t.without(column).Render(width)
	}
	rows := make([][]string, 0, len(t.Rows)+1)
	rows = append(rows, titles(t.Columns))
	for _, row := range t.Rows {
		rows = append(rows, cells(row))
	}
	widths := t.widths(rows, width)
	last := len(t.Columns) - 1
	below := width > 0 && t.Columns[last].Wrap && widths[last] < min(narrowestText, t.widths(rows, Unbound)[last])
	var s strings.Builder
	for i, row := range rows {
		if below {
			s.WriteString(t.above(i-1, row, widths, width))
			continue
		}
		s.WriteString(t.lines(i-1, row, widths))
	}
	return s.String()
}

// Markdown is the table in Markdown, with nothing cut or left out. Empty cells are "-".
func (t Table) Markdown() string {
	var s strings.Builder
	line := func(texts []string) {
		for _, text := range texts {
			s.WriteString("| " + strings.ReplaceAll(text, "|", `\|`) + " ")
		}
		s.WriteString("|\n")
	}
	line(cells(titles(t.Columns)))
	for _, c := range t.Columns {
		if c.Right {
			s.WriteString("|---:")
		} else {
			s.WriteString("|---")
		}
	}
	s.WriteString("|\n")
	for _, row := range t.Rows {
		line(cells(row))
	}
	return s.String()
}

// above is a row with the text of its last column on lines of its own below it,
// where there is no room beside it.
func (t Table) above(row int, cells []string, widths []int, width int) string {
	last := len(cells) - 1
	text := t.line(row, slices.Concat(cells[:last], []string{""}), widths)
	if row < 0 || cells[last] == "-" {
		return text
	}
	const indent = "    "
	for _, piece := range Wrap(cells[last], width-len(indent)) {
		text += indent + piece + "\n"
	}
	return text
}

// optional is the column that the terminal has no room for; -1 is none.
func (t Table) optional(width int) int {
	if width <= 0 {
		return -1
	}
	rows := [][]string{titles(t.Columns)}
	for _, row := range t.Rows {
		rows = append(rows, cells(row))
	}
	total := gap * (len(t.Columns) - 1)
	for i, w := range t.widths(rows, Unbound) {
		if !t.Columns[i].Wrap {
			total += w
		}
	}
	if total <= width {
		return -1
	}
	for i, c := range slices.Backward(t.Columns) {
		if c.Optional {
			return i
		}
	}
	return -1
}

// without is the table without a column.
func (t Table) without(column int) Table {
	less := Table{Columns: slices.Delete(slices.Clone(t.Columns), column, column+1)}
	for _, row := range t.Rows {
		less.Rows = append(less.Rows, slices.Delete(slices.Clone(row), column, column+1))
	}
	if t.Paint != nil {
		less.Paint = func(row, i int, text string) string {
			if i >= column {
				i++
			}
			return t.Paint(row, i, text)
		}
	}
	return less
}

func titles(columns []Column) []string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = c.Title
	}
	return all
}

func cells(row []string) []string {
	all := make([]string, len(row))
	for i, text := range row {
		if all[i] = Clean(text); all[i] == "" {
			all[i] = "-"
		}
	}
	return all
}

func (t Table) widths(rows [][]string, limit int) []int {
	widths, total := make([]int, len(t.Columns)), gap*(len(t.Columns)-1)
	for i := range widths {
		widths[i] = t.Columns[i].Least
		for _, row := range rows {
			widths[i] = max(widths[i], Width(row[i]))
		}
		total += widths[i]
	}
	if limit == 0 { // the rest of the text is lost
		last := len(widths) - 1
		if remaining := Page - (total - widths[last]); t.Columns[last].Wrap && remaining >= narrowestText {
			widths[last] = min(widths[last], remaining)
		}
		return widths
	}
	for total > limit {
		widest := t.widestFlex(widths)
		if widest < 0 {
			break
		}
		widths[widest]--
		total--
	}
	return widths
}

// widestFlex is the column that is cut next; -1 is none.
func (t Table) widestFlex(widths []int) int {
	widest := -1
	for i, c := range t.Columns {
		if c.Flex && widths[i] > narrowest && (widest < 0 || widths[i] > widths[widest]) {
			widest = i
		}
	}
	return widest
}

// lines are a row: more than one where its last cell is wrapped.
func (t Table) lines(row int, cells []string, widths []int) string {
	last := len(cells) - 1
	if !t.Columns[last].Wrap || Width(cells[last]) <= widths[last] {
		return t.line(row, cells, widths)
	}
	pieces := Wrap(cells[last], widths[last])
	cells[last] = pieces[0]
	var text strings.Builder
	text.WriteString(t.line(row, cells, widths))
	indent := gap * last
	for _, w := range widths[:last] {
		indent += w
	}
	for _, piece := range pieces[1:] {
		text.WriteString(strings.Repeat(" ", indent) + piece + "\n")
	}
	return text.String()
}

func (t Table) line(row int, cells []string, widths []int) string {
	var s strings.Builder
	for i, text := range cells {
		if !t.Columns[i].Wrap {
			text = Cut(text, widths[i])
		}
		pad := strings.Repeat(" ", max(0, widths[i]-Width(text)))
		if t.Paint != nil && row >= 0 {
			text = t.Paint(row, i, text)
		}
		switch {
		case t.Columns[i].Right:
			text = pad + text
		case i < len(cells)-1:
			text += pad
		}
		s.WriteString(text)
		if i < len(cells)-1 {
			s.WriteString(strings.Repeat(" ", gap))
		}
	}
	return strings.TrimRight(s.String(), " ") + "\n"
}

// Width is the number of cells of a terminal that text takes.
func Width(text string) int { return cellWidths().StringWidth(text) }

// Cut is text in at most so many cells, with an ellipsis where it was cut.
func Cut(text string, width int) string {
	if Width(text) <= width {
		return text
	}
	return cellWidths().Truncate(text, width, "…")
}

// cellWidths are the same in every locale.
func cellWidths() *runewidth.Condition {
	return &runewidth.Condition{StrictEmojiNeutral: true}
}
