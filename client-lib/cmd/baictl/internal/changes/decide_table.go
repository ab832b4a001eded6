package changes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/series"
)

// VerdictTitle is the title of a table's column of verdicts.
const VerdictTitle = "VERDICT"

// Table is the changes for people, a line for each.
func Table(all []SeriesReport, wide, replay bool) printer.Table {
	t := printer.Table{Columns: tableColumns(wide, replay)}
	for _, r := range all {
		for _, c := range r.Changes {
			t.Rows = append(t.Rows, tableRow(r.Series, c, wide, replay))
		}
	}
	return t
}

func tableColumns(wide, replay bool) []printer.Column {
	columns := []printer.Column{{Title: "SERIES", Flex: true}, {Title: "ROW", Right: true}}
	switch {
	case wide:
		columns = append(columns, printer.Column{Title: "TIME"})
	case !replay:
		columns = append(columns, printer.Column{Title: "DATE"})
	}
	if replay {
		columns = append(columns, printer.Column{Title: "SEEN", Right: true}, printer.Column{Title: "WITHDRAWN", Right: true})
	}
	columns = append(columns, printer.Column{Title: VerdictTitle}, printer.Column{Title: "BEFORE", Right: true},
		printer.Column{Title: "AFTER", Right: true}, printer.Column{Title: "CHANGE"})
	if wide {
		columns = append(columns, printer.Column{Title: "KIND"}, printer.Column{Title: "RANGE"}, printer.Column{Title: "P", Right: true})
	}
	return columns
}

func tableRow(series string, c Change, wide, replay bool) []string {
	row := []string{series, strconv.Itoa(c.Index)}
	switch {
	case wide:
		row = append(row, c.Time)
	case !replay:
		date, _, _ := strings.Cut(c.Time, "T")
		row = append(row, date)
	}
	if replay {
		row = append(row, lifetime(c)...)
	}
	row = append(row, outcome(c), optional(c.Before, printer.Number), optional(c.After, printer.Number), size(c))
	if wide {
		row = append(row, string(c.Kind), fmt.Sprintf("%d to %d", c.Range[0], c.Range[1]), optional(c.P, printer.Number))
	}
	return row
}

// lifetime returns the rows of a change's Lifetime, empty without them.
func lifetime(c Change) []string {
	if c.Lifetime == nil {
		return []string{"", ""}
	}
	withdrawn := ""
	if c.Withdrawn != nil {
		withdrawn = strconv.Itoa(*c.Withdrawn)
	}
	return []string{strconv.Itoa(c.Seen), withdrawn}
}

// outcome is the verdict, or the direction where there is none, or the word for machines that
// differ.
func outcome(c Change) string {
	if c.Kind == series.Environment {
		return "machine"
	}
	if c.Verdict == Undirected {
		return c.Direction
	}
	return c.Verdict
}

// optional is a number, or nothing.
func optional(x *float64, form func(float64) string) string {
	if x == nil {
		return ""
	}
	return form(*x)
}

// size is the magnitude, or else the difference, with its interval: "+6.6 % [+4.9, +8.3]".
func size(c Change) string {
	switch {
	case c.Magnitude != nil:
		form := printer.PercentForm(*c.Magnitude)
		return form(*c.Magnitude) + " %" + ends(c.Interval, form)
	case c.Difference != nil && c.Shift != nil:
		return printer.Signed(*c.Shift) + ends(c.ShiftInterval, printer.Signed)
	}
	return ""
}

func ends(interval *[2]float64, form func(float64) string) string {
	if interval == nil {
		return ""
	}
	return " [" + form(interval[0]) + ", " + form(interval[1]) + "]"
}

// Summary is the numbers of series, rows, which a noun names, and changes.
func Summary(all []SeriesReport, noun string) string {
	var rows, missing, withdrawn int
	verdicts := map[string]int{}
	for _, r := range all {
		rows, missing = rows+r.Points+r.Missing, missing+r.Missing
		for _, c := range r.Changes {
			if !c.Stands() {
				withdrawn++
				continue
			}
			verdicts[c.Verdict]++
		}
	}
	text := fmt.Sprintf("%d series, %s", len(all), printer.Plural(rows, noun))
	if missing > 0 {
		text += fmt.Sprintf(" (%d without a value)", missing)
	}
	text += ", " + printer.Plural(verdicts[Regression]+verdicts[Improvement]+verdicts[Undirected], "change")
	var parts []string
	for _, word := range []string{Regression, Improvement} {
		if n := verdicts[word]; n > 0 {
			parts = append(parts, printer.Plural(n, word))
		}
	}
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	if withdrawn > 0 {
		text += fmt.Sprintf(", %d withdrawn", withdrawn)
	}
	return text
}

// mostNames is how many series a note names.
const mostNames = 3

// Notes are the notes of all series, each once with the names of its series.
func Notes(all []SeriesReport) []string {
	names, order := map[string][]string{}, []string{}
	for _, r := range all {
		for _, note := range r.Notes {
			if names[note] == nil {
				order = append(order, note)
			}
			names[note] = append(names[note], r.Series)
		}
	}
	for i, note := range order {
		of := names[note]
		if more := len(of) - mostNames; more > 0 {
			of = append(slices.Clone(of[:mostNames]), fmt.Sprintf("%d more", more))
		}
		order[i] = strings.Join(of, ", ") + ": " + note
	}
	return order
}

// CSV is the changes as a header and a line for each. A value that a change does not have is
// empty.
func CSV(all []SeriesReport) [][]string {
	rows := [][]string{{
		"series", "index", "time", "kind", "direction", "verdict", "before", "after", "magnitude", "low", "high",
		"shift", "shift_low", "shift_high", "level", "p", "first", "last", "seen", "withdrawn",
	}}
	for _, r := range all {
		for _, c := range r.Changes {
			rows = append(rows, csvRow(r.Series, c))
		}
	}
	return rows
}

func csvRow(series string, c Change) []string {
	exact := func(x *float64) string { return optional(x, printer.Exact) }
	both := func(i *[2]float64) []string {
		if i == nil {
			return []string{"", ""}
		}
		return []string{printer.Exact(i[0]), printer.Exact(i[1])}
	}
	d := c.Difference
	if d == nil {
		d = &Difference{}
	}
	return slices.Concat(
		[]string{series, strconv.Itoa(c.Index), c.Time, string(c.Kind), c.Direction, c.Verdict},
		[]string{exact(c.Before), exact(c.After), exact(c.Magnitude)},
		both(c.Interval), []string{exact(d.Shift)}, both(d.ShiftInterval),
		[]string{exact(c.Level), exact(c.P), strconv.Itoa(c.Range[0]), strconv.Itoa(c.Range[1])}, lifetime(c),
	)
}
