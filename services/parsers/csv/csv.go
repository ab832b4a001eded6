// Package csv reads metrics from a CSV file of one's own.
package csv

import (
	"bytes"
	"encoding/csv"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "csv"

// Limits of what becomes a metric or a label.
const (
	maxRows = 1000 // the last ones
	maxText = 4    // columns of text
)

// labelRow is the number of a row below the header.
const labelRow = "row"

// Kind returns the parser of CSV files.
//
// The first row is the header: names that are no numbers, each once; a column without a name is left out. Cells are apart by ",", ";" or a
// tab: by what the header has most of. Quotes, a byte order mark, both ends of lines, empty rows and rows that begin with "#" are
// understood. Decimals have a point: 1,5 is no number.
//
// With options, a metric is a column by its name. Without, it is each column in which all cells that are not empty are numbers, with the
// unit "1" and no direction. NaN and infinities count as numbers when the columns are told apart, and are left out then.
//
// Each row is a value. If there are several, they have the label row, from 1 on, and columns of text are labels, too, unless those are more
// than 4. Of more than 1,000 rows the last 1,000 count. What is selected is a headline if there is one row; without options, the only
// column is.
func Kind() report.Kind {
	return report.Kind{
		Name: name, Tool: "a benchmark of one's own",
		Metrics: []report.Definition{{
			Name: "*", Unit: "*", Headline: true, Labels: []string{labelRow, "*"},
			Meaning: "a column that was selected, or each column of numbers",
		}},
		Document: true, Looks: looks, Parse: report.DocumentParser(name, parse),
	}
}

// looks reports whether a text begins with a header of two columns or more and a row with a number, and goes on with rows of as many cells.
// The last row may be cut.
func looks(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\uFEFF"))
	r, comma := reader(head)
	header, err := r.Read()
	if err != nil || comma == 0 || len(header) < 2 || ofAnother(header) {
		return false
	}
	columns, fault := headerOf(header)
	numbers := 0
	for fault == "" {
		cells, err := r.Read()
		cut := int(r.InputOffset()) >= len(head) && !bytes.HasSuffix(head, []byte("\n"))
		if err != nil || cut && len(cells) < len(columns) {
			break
		}
		if len(cells) != len(columns) {
			return false
		}
		for _, c := range cells {
			if _, ok := numberIn(c); ok {
				numbers++
			}
		}
	}
	return numbers > 0
}

// ofAnother reports whether a header is one that a tool prints whose kind is another: iperf 2 and tf_cnn_benchmarks.
func ofAnother(cells []string) bool {
	first := strings.Join(cells[:2], ",")
	return first == "time,srcaddress" || first == "Step,Img/sec"
}

func parse(text []byte, o report.Options) report.Report {
	t, fault := read(text)
	if fault != "" {
		return report.Of(name, "", nil, fault)
	}
	if len(o.Metrics) > 0 {
		return t.selected(o.Metrics)
	}
	return t.everything()
}

// reader returns a reader of the rows of a text, and what its cells are apart by: 0 if the header has one cell.
func reader(text []byte) (r *csv.Reader, comma rune) {
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	comma = separator(text)
	r = csv.NewReader(bytes.NewReader(text))
	r.Comment = '#'
	r.FieldsPerRecord = -1
	r.LazyQuotes = true
	r.ReuseRecord = true
	if comma != 0 {
		r.Comma = comma
	}
	return r, comma
}

// separator returns what the first row has most of, outside of quotes.
func separator(text []byte) rune {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		count := map[byte]int{}
		quoted := false
		for _, c := range line {
			switch {
			case c == '"':
				quoted = !quoted
			case !quoted:
				count[c]++
			}
		}
		best := byte(0)
		for _, c := range []byte(",;\t") {
			if count[c] > count[best] {
				best = c
			}
		}
		return rune(best)
	}
	return 0
}
