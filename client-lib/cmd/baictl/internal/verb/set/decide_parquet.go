package set

import (
	"math"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/parquet"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/result"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// typedTable returns the columns and rows of -o csv with types. A parameter's column has
// the type of the TOML values if all are integers, numbers or bools, and otherwise is text.
// Empty texts, a median without values and a parameter that a cell has not are missing.
func typedTable(set string, cells []*baiv1.CellResult, all []*result.Metric) ([]parquet.Column, [][]any) {
	columns := fixedColumns()
	in := inCells(cells)
	names := result.ParameterNames(in)
	first := len(columns)
	for i, column := range parameterColumns(names) {
		columns = append(columns, parquet.Column{Name: column, Kind: kindOf(in, names[i])})
	}
	var rows [][]any
	for _, m := range all {
		for _, c := range m.Cells {
			if c.Result == nil {
				continue
			}
			row := fixedValues(set, m, c)
			for i, name := range names {
				row = append(row, typed(result.Parameter(c.Cell, name), columns[first+i].Kind))
			}
			rows = append(rows, row)
		}
	}
	return columns, rows
}

// fixedColumns are those that do not depend on the sweep.
func fixedColumns() []parquet.Column {
	kinds := map[string]parquet.Kind{
		"n": parquet.Int, "excluded": parquet.Int, "lacking": parquet.Int, "median": parquet.Number,
		"low": parquet.Number, "high": parquet.Number,
		"level": parquet.Number, "best": parquet.Bool, "skipped": parquet.Int,
	}
	var columns []parquet.Column
	for _, name := range resultColumns() {
		columns = append(columns, parquet.Column{Name: name, Kind: kinds[name]})
	}
	return columns
}

// fixedValues are the values of fixedColumns.
func fixedValues(set string, m *result.Metric, c result.InCell) []any {
	r := c.Result
	var low, high, level any
	if i := r.GetInterval(); i != nil {
		low, high, level = i.GetLow(), i.GetHigh(), i.GetLevel()
	}
	return []any{
		set, c.Cell.GetName(), c.Cell.GetId(), m.Name, textOrNil(m.Unit), textOrNil(m.Labels), textOrNil(r.GetDirection()),
		int64(r.GetN()), int64(r.GetExcluded()), int64(r.GetLacking()), numberOrNil(r.GetMedian()), low, high, level,
		c.Best, int64(c.Cell.GetSkipped()),
	}
}

func textOrNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func numberOrNil(x float64) any {
	if math.IsNaN(x) {
		return nil
	}
	return x
}

// kindOf is the type that all values of a parameter have or can be converted to.
func kindOf(cells []result.InCell, name string) parquet.Kind {
	seen := make(map[parquet.Kind]bool)
	for _, c := range cells {
		if text := result.Parameter(c.Cell, name); text != "" {
			seen[kindOfValue(text)] = true
		}
	}
	switch {
	case seen[parquet.Text] || seen[parquet.Bool] && len(seen) > 1:
		return parquet.Text
	case seen[parquet.Number]:
		return parquet.Number
	case seen[parquet.Int]:
		return parquet.Int
	case seen[parquet.Bool]:
		return parquet.Bool
	}
	return parquet.Text
}

// kindOfValue is the type of a TOML value. Dates, times, lists and tables are text.
func kindOfValue(text string) parquet.Kind {
	if text == "true" || text == "false" {
		return parquet.Bool
	}
	if _, err := strconv.ParseInt(text, 0, 64); err == nil {
		return parquet.Int
	}
	if _, err := strconv.ParseFloat(withoutUnderscores(text), 64); err == nil {
		return parquet.Number
	}
	return parquet.Text
}

// typed is a TOML value in a type that it has or can be converted to, nil if there is none.
func typed(text string, kind parquet.Kind) any {
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 0, 64)
	switch kind {
	case parquet.Int:
		return n
	case parquet.Number:
		if err == nil {
			return float64(n)
		}
		x, _ := strconv.ParseFloat(withoutUnderscores(text), 64) // as kindOfValue found
		return x
	case parquet.Bool:
		return text == "true"
	case parquet.Text:
	}
	return result.Content(text)
}

func withoutUnderscores(text string) string { return strings.ReplaceAll(text, "_", "") }
