package result

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/analyst/judge"
)

// cellWith returns a cell with metric m, with the summary that a platform computes of the
// values. Without values it has no metric.
func cellWith(tb testing.TB, direction judge.Direction, values ...float64) *baiv1.CellResult {
	tb.Helper()
	j, err := judge.New(judge.Settings{})
	if err != nil {
		tb.Fatal(err)
	}
	c := &baiv1.CellResult{}
	if len(values) > 0 {
		c.Metrics = []*baiv1.MetricResult{metricOf(j, "m", direction, values)}
	}
	return c
}

func metricOf(j judge.Judge, name string, direction judge.Direction, values []float64) *baiv1.MetricResult {
	s := j.Summarise(values)
	m := &baiv1.MetricResult{
		Metric: name, Direction: string(direction), N: int32(s.N), Excluded: int32(s.Excluded), Median: s.Median, Lacking: int32(s.Lacking),
	}
	for i, v := range values {
		m.Values = append(m.Values, &baiv1.RepetitionValue{Repetition: int32(i + 1), Value: v})
	}
	if s.Interval != nil {
		m.Interval = &baiv1.Interval{Low: s.Interval.Low, High: s.Interval.High, Level: s.Interval.Level}
	}
	return m
}

// from returns n values from a first one on.
func from(first float64, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = first + float64(i)
	}
	return values
}

func TestBestCellsAndNotes(t *testing.T) {
	for name, tt := range map[string]struct {
		direction judge.Direction
		cells     [][]float64
		best      string // numbers of the best cells
		notes     []string
	}{
		"the cell with the smallest values is best if lower is better": {
			direction: judge.Lower, cells: [][]float64{from(100, 6), from(0, 6), from(200, 6)}, best: "1",
		},
		"the cell with the largest values is best if higher is better": {
			direction: judge.Higher, cells: [][]float64{from(100, 6), from(0, 6), from(200, 6)}, best: "2",
		},
		"no cell is best without a direction": {cells: [][]float64{from(100, 6), from(0, 6)}},
		"cells that cannot be told from the best are best, too": {
			direction: judge.Lower, cells: [][]float64{from(0, 6), from(1, 6), from(100, 6)}, best: "0 1",
		},
		"a single cell is not the best of any": {direction: judge.Lower, cells: [][]float64{from(0, 6)}},
		"a cell without enough repetitions is not ranked": {
			direction: judge.Lower, cells: [][]float64{from(100, 6), from(0, 3), from(200, 6)}, best: "0",
			notes: []string{"an interval needs 6 repetitions: 3 are lacking in 1 of 3 cells", "a comparison of cells needs 4 repetitions: 1 is lacking in 1 of 3 cells"},
		},
		"more cells take more repetitions": {
			direction: judge.Lower, cells: [][]float64{from(0, 4), from(100, 4), from(200, 4)}, best: "",
			notes: []string{"an interval needs 6 repetitions: 2 are lacking", "3 cells can be told apart from 5 repetitions of each on"},
		},
		"cells that lack different numbers of repetitions are one note": {
			cells: [][]float64{from(0, 5), from(0, 2), from(0, 6)}, notes: []string{"an interval needs 6 repetitions: 1 to 4 are lacking in 2 of 3 cells"},
		},
		"cells without a value are counted": {
			cells: [][]float64{nil, from(0, 6), nil}, notes: []string{"no value yet: 2 of 3 cells"},
		},
		"values that are not numbers are counted": {
			cells: [][]float64{append(from(0, 6), math.NaN(), math.Inf(1))}, notes: []string{"2 values excluded: not a number, or infinite"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var cells []*baiv1.CellResult
			for _, values := range tt.cells {
				cells = append(cells, cellWith(t, tt.direction, values...))
			}
			m := single(t, cells)
			if diff := cmp.Diff(tt.best, bestOf(m)); diff != "" {
				t.Errorf("best cells (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.notes, m.Notes()); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCellsOfWhichTheSetMakesNoRunsLackNothing(t *testing.T) {
	cells := []*baiv1.CellResult{cellWith(t, judge.Lower, from(0, 6)...), {Name: "waits"}, {Name: "left out", NotSelected: true}}
	if diff := cmp.Diff([]string{"no value yet: 1 of 2 cells"}, single(t, cells).Notes()); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestResultsWhoseLabelsReadAlikeAreTwo(t *testing.T) {
	one, two := cellWith(t, judge.Lower, 1), cellWith(t, judge.Lower, 2)
	one.Metrics[0].Labels = map[string]string{"a": "1,b=2"}
	two.Metrics[0].Labels = map[string]string{"a": "1", "b": "2"}
	all, err := ByMetric([]*baiv1.CellResult{{Metrics: append(one.GetMetrics(), two.GetMetrics()...)}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		got = append(got, m.Label()+" "+m.Cells[0].Text())
	}
	if diff := cmp.Diff([]string{"m {a=1,b=2} 1 n=1", "m {a=1,b=2} 2 n=1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// single returns the results of the only metric.
func single(t *testing.T, cells []*baiv1.CellResult) *Metric {
	t.Helper()
	all, err := ByMetric(cells)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 {
		t.Fatalf("%d metrics, want 1", len(all))
	}
	return all[0]
}

// bestOf returns the numbers of the best cells.
func bestOf(m *Metric) string {
	var best []string
	for i, c := range m.Cells {
		if c.Best {
			best = append(best, fmt.Sprint(i))
		}
	}
	return strings.Join(best, " ")
}

func TestPlacesHaveTies(t *testing.T) {
	for name, tt := range map[string]struct {
		cells [][]float64
		want  string
	}{
		"cells that cannot be told from the best share the first place": {[][]float64{from(0, 8), from(1, 8), from(100, 8), from(200, 8)}, "1 1 3 4"},
		"cells with equal medians share a place":                        {[][]float64{from(200, 8), from(0, 8), from(100, 8), from(100, 8)}, "4 1 2 2"},
		"a cell without enough repetitions or a value has no place":     {[][]float64{from(100, 6), nil, from(0, 3), from(200, 6)}, "1 0 0 2"},
		"a single cell has no place":                                    {[][]float64{from(0, 6)}, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			var cells []*baiv1.CellResult
			for _, values := range tt.cells {
				cells = append(cells, cellWith(t, judge.Lower, values...))
			}
			var places []string
			for _, c := range single(t, cells).Cells {
				places = append(places, fmt.Sprint(c.Place))
			}
			if got := strings.Join(places, " "); got != tt.want {
				t.Errorf("places %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAMetricHasTheDirectionThatOneCellHas(t *testing.T) {
	m := single(t, []*baiv1.CellResult{cellWith(t, "", from(100, 6)...), cellWith(t, judge.Lower, from(0, 6)...)})
	if got := bestOf(m); got != "1" {
		t.Errorf("best cells %q, want 1", got)
	}
}

// grid returns cells with these parameters, written as in "size=\"1K\" n=1".
func grid(t *testing.T, cells ...string) *Metric {
	t.Helper()
	var all []*baiv1.CellResult
	for i, text := range cells {
		c := cellWith(t, "", float64(i))
		for pair := range strings.FieldsSeq(text) {
			name, value, _ := strings.Cut(pair, "=")
			c.Parameters = append(c.Parameters, &baiv1.CellParameter{Name: name, Value: value})
		}
		all = append(all, c)
	}
	return single(t, all)
}

func TestTheEntriesOfASuiteHaveAColumn(t *testing.T) {
	cells := []*baiv1.CellResult{cellWith(t, judge.Lower, 1), cellWith(t, judge.Lower, 2)}
	for i, name := range []string{"plain", "swept/size=1K"} {
		entry, _, _ := strings.Cut(name, "/")
		cells[i].Name, cells[i].Parameters = name, []*baiv1.CellParameter{{Name: "suite.entry", Value: fmt.Sprintf("%q", entry)}}
	}
	table := single(t, cells).Table()
	want := [][]string{{"plain", "", "1 n=1", ""}, {"swept", "size=1K", "2 n=1", ""}}
	if diff := cmp.Diff(want, table.Rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(table.Columns) != 4 || table.Columns[0].Title != "ENTRY" || table.Columns[1].Title != "CELL" {
		t.Errorf("%+v", table.Columns)
	}
}

func TestPivotTable(t *testing.T) {
	for name, tt := range map[string]struct {
		cells         []string
		rows, columns string
		want          string
	}{
		"one parameter makes the lines, the other one the columns": {
			[]string{`size="1K" n=1`, `size="1K" n=2`, `size="1M" n=1`, `size="1M" n=2`},
			"size", "n", "size n=1 n=2\n1K 0 1\n1M 2 3\n",
		},
		"parameters change places": {
			[]string{`size="1K" n=1`, `size="1K" n=2`, `size="1M" n=1`, `size="1M" n=2`},
			"n", "size", "n size=1K size=1M\n1 0 2\n2 1 3\n",
		},
		"a further parameter that varies makes lines, too": {
			[]string{`a=1 b=1 c=1`, `a=1 b=1 c=2`, `a=1 b=2 c=1`, `a=1 b=2 c=2`},
			"a", "c", "a b c=1 c=2\n1 1 0 1\n1 2 2 3\n",
		},
		"a further parameter that does not vary is left out": {
			[]string{`a=1 b=7`, `a=2 b=7`}, "a", "", "a MEDIAN\n1 0\n2 1\n",
		},
		"a place without a cell is empty": {
			[]string{`a=1 b=1`, `a=2 b=2`}, "a", "b", "a b=1 b=2\n1 0 -\n2 - 1\n",
		},
		"a cell without a parameter has a place of its own": {
			[]string{`a=1 b=1`, `a=1`, `b=1`}, "a", "b", "a b=1 b=-\n1 0 1\n- 2 -\n",
		},
		"values of different types are different": {
			[]string{`a=1 b=1`, `a="1" b=1`}, "a", "b", "a b=1\n1 0\n1 1\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := grid(t, tt.cells...).PivotTable(tt.rows, tt.columns).Render(printer.Unbound)
			got = strings.ReplaceAll(got, " n=1\n", "\n") // the number of repetitions
			var lines strings.Builder
			for i, line := range strings.Split(strings.TrimSpace(got), "\n") {
				if i > 0 {
					line = strings.ReplaceAll(line, " n=1", "")
				}
				lines.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
			}
			if diff := cmp.Diff(tt.want, lines.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAParameterIsNamedByItsPathOrTheLastPartOfThat(t *testing.T) {
	names := []string{"size", "hardware.cpus", "env.a", "other.a", "b", "x.b"}
	for name, want := range map[string]string{
		"size": "size", "hardware.cpus": "hardware.cpus", "cpus": "hardware.cpus", "a": "", "b": "b", "none": "", "ware.cpus": "",
	} {
		if got := FindParameter(names, name); got != want {
			t.Errorf("%q is parameter %q, want %q", name, got, want)
		}
	}
}

func TestTheContentOfAValueIsShown(t *testing.T) {
	for text, want := range map[string]string{`"1K"`: "1K", `"a\"\\b\u00e9"`: `a"\bé`, "12": "12", "true": "true", `["a", "b"]`: `["a", "b"]`, "'a'": "'a'", "": ""} {
		if got := Content(text); got != want {
			t.Errorf("%s is shown as %q, want %q", text, got, want)
		}
	}
}

// BenchmarkPivot groups and ranks the results of 10,000 cells with 10 metrics and 6
// repetitions, and makes the pivot table of one metric. The bar is 300 ms.
func BenchmarkPivot(b *testing.B) {
	j, err := judge.New(judge.Settings{})
	if err != nil {
		b.Fatal(err)
	}
	cells := make([]*baiv1.CellResult, 10_000)
	for i := range cells {
		cells[i] = &baiv1.CellResult{Parameters: []*baiv1.CellParameter{
			{Name: "a", Value: fmt.Sprint(i / 100)}, {Name: "b", Value: fmt.Sprint(i % 100)},
		}}
		for n := range 10 {
			values := from(float64((i*7919+n*104729)%10_000)+float64(i%7)/10, 6)
			cells[i].Metrics = append(cells[i].Metrics, metricOf(j, fmt.Sprintf("metric-%d", n), judge.Lower, values))
		}
	}
	for b.Loop() {
		all, err := ByMetric(cells)
		if err != nil {
			b.Fatal(err)
		}
		if t := all[0].PivotTable("a", "b"); len(t.Rows) != 100 || len(t.Columns) != 101 {
			b.Fatal(len(t.Rows), len(t.Columns))
		}
		for _, m := range all {
			m.Notes()
		}
	}
}
