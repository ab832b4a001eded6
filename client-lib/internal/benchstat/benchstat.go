// Package benchstat compares texts of Go's benchmark format as the command
// golang.org/x/perf/cmd/benchstat does without flags: the same tables, the same
// warnings, byte for byte. The numbers come from the packages that the command
// uses too; the tables are drawn here.
package benchstat

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/perf/benchproc"
)

// Input is one text of results, and one column of the tables.
type Input struct {
	// Name is written as on benchstat's command line: path, or label=path. The
	// path stands in warnings, the label heads the column. Without a label, the
	// path does, with #0, #1 and so on where several inputs have it. Inputs of
	// one label share a column.
	Name string

	// Text has the results, and is not closed. Without it, they are read from
	// the file at the path. The path - is a file's name here: a caller whose
	// user means the standard input gives it as the text.
	Text io.Reader
}

// Print compares the first input with each later one, and writes the tables to
// out. Lines that it cannot read are no error: it leaves them out and says so
// on warnings, one line each. Where an input cannot be read, it writes no table;
// the error's text is the one that benchstat prints behind its name.
//
// It differs from benchstat in one case: two samples with a NaN among them are
// not compared, and a footnote says so; benchstat runs out of memory.
func Print(out, warnings io.Writer, inputs []Input) error {
	r := newResults()
	for _, s := range sources(inputs) {
		if err := r.read(s, warnings); err != nil {
			return err
		}
	}
	var text strings.Builder
	writeTables(&text, r)
	_, err := io.WriteString(out, text.String())
	return err
}

// writeTables writes a table for each unit of each configuration. Above it are
// the keys whose values differ from those of the table before.
func writeTables(w *strings.Builder, r *results) {
	var last benchproc.Key
	for i, key := range r.tableKeys() {
		if i > 0 {
			fmt.Fprintln(w)
		}
		for _, field := range key.Projection().FlattenedFields() {
			value := key.Get(field)
			if field == r.unit || i > 0 && value == last.Get(field) {
				continue
			}
			fmt.Fprintf(w, "%s: %s\n", field.Name, value)
		}
		last = key
		writeTable(w, r.table(key))
	}
}
