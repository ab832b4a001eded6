package benchstat

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchproc"
)

// source is an input whose name is taken apart.
type source struct {
	path, label string
	text        io.Reader
}

// sources takes the names of the inputs apart, and numbers the paths that
// several inputs without a label have.
func sources(inputs []Input) []source {
	times := map[string]int{}
	for _, in := range inputs {
		if !strings.Contains(in.Name, "=") {
			times[in.Name]++
		}
	}
	all := make([]source, len(inputs))
	number := map[string]int{}
	for i, in := range inputs {
		label, path, labelled := strings.Cut(in.Name, "=")
		if !labelled {
			path = in.Name
		}
		if !labelled && times[path] > 1 {
			label = fmt.Sprintf("%s#%d", path, number[path])
			number[path]++
		}
		all[i] = source{path: path, label: label, text: in.Text}
	}
	return all
}

// results are the measurements of all inputs, by the table, row and column in
// which benchstat shows them.
type results struct {
	reader          benchfmt.Reader // knows what all inputs say about units
	byTable         *benchproc.Projection
	byRow, byColumn *benchproc.Projection
	unit            *benchproc.Field // the last field of a table's key
	samples         map[benchproc.Key]map[coordinates][]float64
}

// coordinates are the keys of a cell of a table.
type coordinates struct{ row, column benchproc.Key }

// newResults returns results that have a table for each configuration and unit,
// a row for each name of a benchmark, and a column for each label.
func newResults() *results {
	var p benchproc.ProjectionParser
	r := &results{samples: map[benchproc.Key]map[coordinates][]float64{}}
	// The expressions are constant and right, so that there is no error.
	r.byTable, r.unit, _ = p.ParseWithUnit(".config", nil)
	r.byRow, _ = p.Parse(".fullname", nil)
	r.byColumn, _ = p.Parse(".file", nil)
	return r
}

// read adds the measurements of a source.
func (r *results) read(s source, warnings io.Writer) error { return r.each(s, warnings, r.add) }

// each calls add for each line of a source that has measurements. An error is about
// reading or writing, never about what the text says.
func (r *results) each(s source, warnings io.Writer, add func(*benchfmt.Result)) error {
	text := s.text
	if text == nil {
		file, err := os.Open(s.path)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // it was only read
		text = file
	}
	r.reader.Reset(text, s.path, ".file", s.label)
	for r.reader.Scan() {
		switch record := r.reader.Result().(type) {
		case *benchfmt.SyntaxError:
			if _, err := fmt.Fprintln(warnings, record); err != nil {
				return err
			}
		case *benchfmt.Result:
			add(record)
		}
	}
	return r.reader.Err()
}

// add adds the measurements of one line.
func (r *results) add(line *benchfmt.Result) {
	at := coordinates{row: r.byRow.Project(line), column: r.byColumn.Project(line)}
	for i, key := range r.byTable.ProjectValues(line) {
		if r.samples[key] == nil {
			r.samples[key] = map[coordinates][]float64{}
		}
		r.samples[key][at] = append(r.samples[key][at], line.Values[i].Value)
	}
}

// tableKeys returns the keys of the tables, in the order in which they are shown.
func (r *results) tableKeys() []benchproc.Key {
	return sorted(maps.Keys(r.samples))
}

// table returns the numbers of a table.
func (r *results) table(key benchproc.Key) table {
	samples := r.samples[key]
	rows, columns := map[benchproc.Key]bool{}, map[benchproc.Key]bool{}
	for at := range samples {
		rows[at.row], columns[at.column] = true, true
	}
	unit := key.Get(r.unit)
	m := measurements{unit: unit, assumption: r.reader.Units().GetAssumption(unit)}
	order := sorted(maps.Keys(columns))
	for _, column := range order {
		m.columns = append(m.columns, column.StringValues())
	}
	for _, row := range sorted(maps.Keys(rows)) {
		values := make([][]float64, len(order))
		for i, column := range order {
			values[i] = samples[coordinates{row: row, column: column}]
		}
		m.rows = append(m.rows, measured{name: row.StringValues(), values: values})
	}
	return decide(m)
}

// sorted returns keys of one projection in the order in which they were first seen.
func sorted(keys func(yield func(benchproc.Key) bool)) []benchproc.Key {
	all := slices.Collect(keys)
	benchproc.SortKeys(all)
	return all
}
