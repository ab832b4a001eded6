// Package table reads tables that benchmark tools print as text: a header with the titles of columns, and rows of numbers below it.
package table

import (
	"bytes"
	"fmt"
	"maps"
	"math"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

// Column is a column of a table. One without a name is a label of its row, or nothing.
type Column struct {
	Title     string // as the header has it
	Name      string // of the metric
	Unit      string
	Direction report.Direction
	Exponent  string            // the decimal power of the base unit, as e-6 for microseconds
	Factor    float64           // by which a value is multiplied besides, for units that are no decimal powers; 0 is none
	Labels    map[string]string // of the metric, beside those of the row
}

// Header returns the columns of a header. Of two known titles the longer one must come first if it begins with the other. A word that
// begins no known title is a column of its own, without a name.
func Header(line []byte, known []Column) []Column {
	var all []Column
	for rest := bytes.TrimLeft(line, " \t"); len(rest) > 0; rest = bytes.TrimLeft(rest, " \t") {
		c := column(rest, known)
		all = append(all, c)
		rest = rest[len(c.Title):]
	}
	return all
}

// Headers remembers the columns of headers, because logs repeat them.
type Headers struct {
	seen map[string][]Column
}

// maxHeaders is how many headers are remembered: more than a tool has.
const maxHeaders = 64

// Of returns what read returns for the line. It may be that of an earlier call.
func (h *Headers) Of(line []byte, read func(line []byte) []Column) []Column {
	if columns, ok := h.seen[string(line)]; ok {
		return columns
	}
	columns := read(line)
	if len(h.seen) < maxHeaders {
		if h.seen == nil {
			h.seen = make(map[string][]Column)
		}
		h.seen[string(line)] = columns
	}
	return columns
}

func column(rest []byte, known []Column) Column {
	for _, c := range known {
		if len(rest) >= len(c.Title) && string(rest[:len(c.Title)]) == c.Title {
			return c
		}
	}
	end := bytes.IndexAny(rest, " \t")
	if end < 0 {
		end = len(rest)
	}
	return Column{Title: string(rest[:end])}
}

// Value returns a printed number in the base unit. The exponent is parsed with it, so that decimal units are exact.
func (c Column) Value(text string) (float64, bool) {
	v, ok := report.Number(text + c.Exponent)
	if c.Factor != 0 {
		v *= c.Factor
	}
	return v, ok && math.Abs(v) <= math.MaxFloat64/2
}

// Metric returns the metric of a printed number; labels are those of the row.
func (c Column) Metric(text string, labels map[string]string) (report.Metric, bool) {
	v, ok := c.Value(text)
	all := make(map[string]string, len(labels)+len(c.Labels))
	for _, some := range []map[string]string{labels, c.Labels} {
		maps.Copy(all, some)
	}
	return report.Metric{Name: c.Name, Value: v, Unit: c.Unit, Direction: c.Direction, Labels: all}, ok
}

// IsRow reports whether a line begins with a digit, as rows do, after blanks.
func IsRow(line []byte) bool {
	for _, b := range line {
		if b != ' ' && b != '\t' {
			return b >= '0' && b <= '9'
		}
	}
	return false
}

// maxRows is how many bytes of rows are kept of one table: more than any tool prints.
const maxRows = 8 << 20

// Rows are rows as they were printed. They are parsed once it is known that they count.
type Rows struct {
	text []byte
	Full bool // rows were left out, because there were too many
}

// Add keeps a copy of a row.
func (r *Rows) Add(line []byte) {
	if r.Full = r.Full || len(r.text)+len(line) >= maxRows; !r.Full {
		r.text = append(append(r.text, line...), '\n')
	}
}

// None reports whether there is no row.
func (r *Rows) None() bool { return len(r.text) == 0 }

// Reset forgets all rows, but keeps their memory.
func (r *Rows) Reset() { r.text, r.Full = r.text[:0], false }

// Each calls see with the words of each row.
func (r *Rows) Each(see func(words []string)) {
	for line := range bytes.Lines(r.text) {
		fields := bytes.Fields(line)
		words := make([]string, len(fields))
		for i, f := range fields {
			words[i] = string(f)
		}
		see(words)
	}
}

// Metrics is a list of metrics of which no two have the same name and labels: the last one counts.
type Metrics struct {
	list []report.Metric
	at   map[string]int
}

// Put adds a metric, or replaces the one with its name and labels.
func (s *Metrics) Put(m report.Metric) {
	if s.at == nil {
		s.at = make(map[string]int)
	}
	id := fmt.Sprint(m.Name, m.Labels)
	if i, ok := s.at[id]; ok {
		s.list[i] = m
		return
	}
	s.at[id] = len(s.list)
	s.list = append(s.list, m)
}

// List returns the metrics in the order in which they came.
func (s *Metrics) List() []report.Metric { return s.list }

// Best keeps the better one of a metric and the best so far; that is empty at first.
func Best(best *report.Metric, m report.Metric) {
	better := m.Value > best.Value
	if m.Direction == report.Lower {
		better = m.Value < best.Value
	}
	if best.Name == "" || better {
		*best = m
	}
}
