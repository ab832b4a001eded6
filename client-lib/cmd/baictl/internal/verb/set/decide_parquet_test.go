package set

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/parquet"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/result"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// cellsOf returns the cells of a metric.
func cellsOf(m *result.Metric) (all []*baiv1.CellResult) {
	for _, c := range m.Cells {
		all = append(all, c.Cell)
	}
	return all
}

// metricWith returns a metric with a cell for each value of a parameter; "" is none.
func metricWith(name string, values ...string) *result.Metric {
	m := &result.Metric{Name: "m"}
	for i, v := range values {
		c := &baiv1.CellResult{Name: fmt.Sprint("c", i)}
		if v != "" {
			c.Parameters = []*baiv1.CellParameter{{Name: name, Value: v}}
		}
		m.Cells = append(m.Cells, result.InCell{Cell: c, Result: &baiv1.MetricResult{Median: float64(i), N: 1}})
	}
	return m
}

func TestAParameterHasTheTypeOfItsValues(t *testing.T) {
	for name, tt := range map[string]struct {
		values []string
		kind   parquet.Kind
		want   []any
	}{
		"integers":                      {[]string{"1", "1_000", "0x10", "0o17", "-3", "+3"}, parquet.Int, []any{int64(1), int64(1000), int64(16), int64(15), int64(-3), int64(3)}},
		"floats and integers":           {[]string{"1", "2.5", "1e3", "1_000.5", "inf"}, parquet.Number, []any{1.0, 2.5, 1000.0, 1000.5, math.Inf(1)}},
		"bools":                         {[]string{"true", "false"}, parquet.Bool, []any{true, false}},
		"strings":                       {[]string{`"1K"`, `"a\"b"`}, parquet.Text, []any{"1K", `a"b`}},
		"strings of digits are strings": {[]string{`"1"`, `"2"`}, parquet.Text, []any{"1", "2"}},
		"integers and strings":          {[]string{"1_000", `"x"`}, parquet.Text, []any{"1_000", "x"}},
		"bools and integers":            {[]string{"1", "true"}, parquet.Text, []any{"1", "true"}},
		"a cell without the parameter":  {[]string{"1", ""}, parquet.Int, []any{int64(1), nil}},
		"dates and lists are text":      {[]string{"2026-01-02", `["a", 1]`}, parquet.Text, []any{"2026-01-02", `["a", 1]`}},
	} {
		t.Run(name, func(t *testing.T) {
			m := metricWith("p", tt.values...)
			columns, rows := typedTable("s", cellsOf(m), []*result.Metric{m})
			last := len(columns) - 1
			if columns[last] != (parquet.Column{Name: "p", Kind: tt.kind}) {
				t.Errorf("column %v, want p of kind %d", columns[last], tt.kind)
			}
			var got []any
			for _, row := range rows {
				got = append(got, row[last])
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAParameterWithTheNameOfAColumnGetsAnotherOne(t *testing.T) {
	m := metricWith("n", "1")
	m.Cells[0].Cell.Parameters = append(m.Cells[0].Cell.Parameters, &baiv1.CellParameter{Name: "parameter.n", Value: "2"})
	columns, rows := typedTable("s", cellsOf(m), []*result.Metric{m})
	names := ""
	for _, c := range columns[len(columns)-2:] {
		names += c.Name + " "
	}
	if names != "parameter.n parameter.parameter.n " || len(rows[0]) != len(columns) {
		t.Errorf("columns %q, %d values of %d", names, len(rows[0]), len(columns))
	}
}

func TestMissingValuesAreNull(t *testing.T) {
	m := metricWith("p", "1", "2", "")
	m.Unit = "ms"
	m.Cells[1].Result = &baiv1.MetricResult{Median: 1, N: 6, Direction: "lower", Interval: &baiv1.Interval{Low: 1, High: 2, Level: 0.97}}
	m.Cells[1].Cell.Skipped = 4
	m.Cells[2].Result = &baiv1.MetricResult{Median: math.NaN(), Excluded: 3}
	m.Cells = append(m.Cells, result.InCell{Cell: &baiv1.CellResult{}}) // without a value
	_, rows := typedTable("s", cellsOf(m), []*result.Metric{m})
	none := int64(0)
	want := [][]any{
		{"s", "c0", "", "m", "ms", nil, nil, int64(1), none, none, 0.0, nil, nil, nil, false, none, int64(1)},
		{"s", "c1", "", "m", "ms", nil, "lower", int64(6), none, none, 1.0, 1.0, 2.0, 0.97, false, int64(4), int64(2)},
		{"s", "c2", "", "m", "ms", nil, nil, none, int64(3), none, nil, nil, nil, nil, false, none, nil},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestASetWithoutResultsHasAllColumns(t *testing.T) {
	columns, rows := typedTable("s", cellsOf(metricWith("p", "1", "2.5")), nil)
	if last := columns[len(columns)-1]; len(rows) != 0 || last != (parquet.Column{Name: "p", Kind: parquet.Number}) {
		t.Errorf("the last column is %v, rows %v", last, rows)
	}
}
