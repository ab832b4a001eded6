package csv

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/internal/document"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// column is what all rows tell of a column.
type column struct {
	name    string
	numbers int    // cells that are some, with those that are not finite
	texts   int    // cells that are neither empty nor numbers
	example string // the first of those
	row     int    // where it is
}

// isNumeric reports whether the column is a metric if nobody selects any.
func (c column) isNumeric() bool { return c.name != "" && c.texts == 0 && c.numbers > 0 }

// table is a file: what all rows tell of the columns, and the last rows themselves.
type table struct {
	columns []column
	rows    [][]string // a ring, if there are more
	count   int        // of all rows
	uneven  string     // the first row that has not as many cells as the header
}

// read reads a text. The fault says why it is no table.
func read(text []byte) (t *table, fault string) {
	r, _ := reader(text)
	cells, err := r.Read()
	if err != nil {
		return nil, cmp.Or(faultOf(err), "there is no header")
	}
	t = &table{}
	if t.columns, fault = headerOf(cells); fault != "" {
		return nil, fault
	}
	for {
		cells, err := r.Read()
		if err != nil {
			if t.count == 0 {
				return nil, cmp.Or(faultOf(err), "no row is below the header")
			}
			t.uneven = cmp.Or(t.uneven, faultOf(err))
			return t, ""
		}
		t.row(cells)
	}
}

// faultOf returns what is wrong with a row; it is "" at the end of the text.
func faultOf(err error) string {
	if errors.Is(err, io.EOF) {
		return ""
	}
	return report.Clip(err.Error())
}

// headerOf returns the columns of a header, or why it is none.
func headerOf(cells []string) (columns []column, fault string) {
	seen := make(map[string]bool)
	named := 0
	for i, c := range cells {
		c = strings.TrimSpace(strings.ToValidUTF8(c, "\uFFFD"))
		if _, ok := numberIn(c); ok {
			return nil, report.Clip(fmt.Sprintf("the first row is no header: its cell %d is %q", i+1, c))
		}
		if seen[c] && c != "" {
			return nil, report.Clip(fmt.Sprintf("two columns have the name %q", c))
		}
		seen[c] = true
		if c != "" {
			named++
		}
		columns = append(columns, column{name: c})
	}
	if named == 0 {
		return nil, "the first row has no names"
	}
	return columns, ""
}

// row notes a row.
func (t *table) row(cells []string) {
	t.count++
	if len(cells) != len(t.columns) && t.uneven == "" {
		t.uneven = fmt.Sprintf("row %d has %d cells, the header %d", t.count, len(cells), len(t.columns))
	}
	for i := range min(len(cells), len(t.columns)) {
		t.columns[i].see(cells[i], t.count)
	}
	if len(t.rows) < maxRows {
		t.rows = append(t.rows, slices.Clone(cells))
		return
	}
	i := (t.count - 1) % maxRows
	t.rows[i] = append(t.rows[i][:0], cells...)
}

func (c *column) see(cell string, row int) {
	if _, ok := numberIn(cell); ok {
		c.numbers++
		return
	}
	if strings.TrimSpace(cell) == "" {
		return
	}
	if c.texts++; c.texts == 1 {
		c.example, c.row = cell, row
	}
}

// numberIn reads a cell that has a number. Finite is false for NaN and infinities, as programs write them; ok is true for them.
func numberIn(cell string) (value number, ok bool) {
	cell = strings.TrimSpace(cell)
	if v, ok := report.Number(cell); ok {
		return number{v, true}, true
	}
	if len(cell) > len("-infinity") || cell == "" {
		return number{}, false
	}
	switch strings.ToLower(strings.TrimLeft(cell, "+-")) {
	case "nan", "inf", "infinity":
		return number{}, true
	}
	return number{}, false
}

// number is what a cell has.
type number struct {
	value  float64
	finite bool
}

// last calls see with each of the last rows, and its number.
func (t *table) last(see func(n int, cells []string)) {
	for n := max(1, t.count-maxRows+1); n <= t.count; n++ {
		see(n, t.rows[(n-1)%maxRows])
	}
}

// metric is a column that is one.
type metric struct {
	report.Selection
	column   int
	headline bool
}

// everything returns the report of all columns of numbers.
func (t *table) everything() report.Report {
	var metrics []metric
	for i, c := range t.columns {
		if c.isNumeric() {
			metrics = append(metrics, metric{Selection: report.Selection{Name: c.name}, column: i})
		}
	}
	if len(metrics) == 0 {
		return report.Of(name, "", nil, "no column has numbers only")
	}
	metrics[0].headline = len(metrics) == 1 && t.count == 1
	return t.report(metrics, nil)
}

// selected returns the report of the columns that are selected.
func (t *table) selected(selections []report.Selection) report.Report {
	var metrics []metric
	var missing []string
	taken := make(map[string]bool)
	for _, s := range selections {
		s.Name = cmp.Or(s.Name, s.Path)
		i := slices.IndexFunc(t.columns, func(c column) bool { return c.name != "" && c.name == s.Path })
		switch {
		case i < 0:
			missing = append(missing, t.noColumn(s.Path))
		case taken[s.Name]:
			missing = append(missing, fmt.Sprintf("two metrics have the name %q", s.Name))
		default:
			if fault := t.columns[i].fault(); fault != "" {
				missing = append(missing, fault)
			}
			taken[s.Name] = true
			metrics = append(metrics, metric{Selection: s, column: i, headline: t.count == 1})
		}
	}
	r := t.report(metrics, missing)
	if len(r.Metrics) == 0 {
		return report.Failure(name, "", nil, r.Reason)
	}
	return r
}

// fault says what in a column is no number.
func (c column) fault() string {
	switch {
	case c.texts > 0:
		return report.Clip(fmt.Sprintf("column %s has %q in row %d, which is no number", c.name, c.example, c.row))
	case c.numbers == 0:
		return report.Clip(fmt.Sprintf("column %s has no number", c.name))
	}
	return ""
}

// noColumn says that there is no such column, and names that which was meant.
func (t *table) noColumn(path string) string {
	var names []string
	for _, c := range t.columns {
		if c.name != "" {
			names = append(names, c.name)
		}
	}
	fault := report.Clip(fmt.Sprintf("there is no column %q", path))
	if nearest := document.Nearest(path, names); nearest != "" {
		return report.Clip(fmt.Sprintf("%s: did you mean %q?", fault, nearest))
	}
	return report.Clip(fmt.Sprintf("%s: there are %s", fault, strings.Join(names, ", ")))
}

// report returns the values of metrics in the last rows.
func (t *table) report(metrics []metric, missing []string) report.Report {
	text := t.textColumns(metrics)
	var all []report.Metric
	endless := 0
	t.last(func(n int, cells []string) {
		labels := t.labels(n, cells, text)
		for _, m := range metrics {
			v, ok := m.in(cells)
			switch {
			case ok && v.finite:
				all = append(all, m.metric(v.value, maps.Clone(labels)))
			case ok:
				endless++
			}
		}
	})
	if endless > 0 {
		missing = append(missing, fmt.Sprintf("%d values are not finite", endless))
	}
	if t.uneven != "" {
		missing = append(missing, t.uneven)
	}
	if t.count > maxRows {
		missing = append(missing, fmt.Sprintf("only the last %d of %d rows count", maxRows, t.count))
	}
	if len(all) == 0 && len(missing) == 0 {
		missing = append(missing, "no number in the rows")
	}
	return report.Of(name, "", all, strings.Join(missing, "; "))
}

// in returns the number that a row has of a metric.
func (m metric) in(cells []string) (number, bool) {
	if m.column >= len(cells) {
		return number{}, false
	}
	return numberIn(cells[m.column])
}

func (m metric) metric(value float64, labels map[string]string) report.Metric {
	return report.Metric{
		Name: m.Name, Value: value, Unit: cmp.Or(m.Unit, report.Count), Direction: m.Direction, Labels: labels, Headline: m.headline,
	}
}

// textColumns returns the columns that are labels.
func (t *table) textColumns(metrics []metric) []int {
	var text []int
	for i, c := range t.columns {
		isMetric := slices.ContainsFunc(metrics, func(m metric) bool { return m.column == i })
		if c.name != "" && c.name != labelRow && c.texts > 0 && !isMetric {
			text = append(text, i)
		}
	}
	if len(text) > maxText {
		return nil
	}
	return text
}

// labels returns those of a row. A single row needs no number.
func (t *table) labels(n int, cells []string, text []int) map[string]string {
	labels := make(map[string]string)
	if t.count > 1 {
		labels[labelRow] = strconv.Itoa(n)
	}
	for _, i := range text {
		if i < len(cells) {
			labels[t.columns[i].name] = strings.ToValidUTF8(cells[i], "\uFFFD")
		}
	}
	return labels
}
