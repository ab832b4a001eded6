package result

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/client-lib/internal/plot"
)

// outline is a chart without the values: "size | a=1: 1 2 | a=2: 1 2", with the categories in
// brackets if there are any.
func outline(c plot.Chart) string {
	text := c.XLabel
	if c.Categories != nil {
		text += fmt.Sprint(" ", c.Categories)
	}
	for _, g := range c.Groups {
		text += " | " + g.Name + ":"
		for _, p := range g.Points {
			text += fmt.Sprint(" ", p.X)
		}
	}
	return text
}

func TestChartByParameters(t *testing.T) {
	for name, tt := range map[string]struct {
		cells []string
		x, by string
		want  string
	}{
		"numbers make lines, with one for each value of the second parameter": {
			[]string{`n=1 a="x"`, `n=1 a="y"`, `n=2 a="x"`, `n=2 a="y"`}, "n", "a", "n | a=x: 1 2 | a=y: 1 2",
		},
		"strings make bars in the order of the sweep": {[]string{`a="b"`, `a="a"`}, "a", "", "a [b a] | : 0 1"},
		"zeros before a number make it no octal one":  {[]string{`a="008"`, `a="016"`, `a=0o17`, `a="-0x10"`, `a=0b11`}, "a", "", "a | : 8 16 15 -16 3"},
		"strings that are numbers make lines":         {[]string{`a="2"`, `a="0x10"`, `a=1_000`, `a=2.5e0`}, "a", "", "a | : 2 16 1000 2.5"},
		"one value that is no number makes bars":      {[]string{`a=2`, `a="x"`}, "a", "", "a [2 x] | : 0 1"},
		"infinity makes bars":                         {[]string{`a=2`, `a=inf`}, "a", "", "a [2 inf] | : 0 1"},
		"a cell without the parameter makes bars":     {[]string{`a=2 b=1`, `b=1`}, "a", "", "a [2 -] | : 0 1"},
		"a further parameter makes groups, too":       {[]string{`n=1 a=1 b=1`, `n=1 a=1 b=2`, `n=1 a=2 b=1`}, "n", "a", "n | a=1, b=1: 1 | a=1, b=2: 1 | a=2, b=1: 1"},
		"a parameter that others decide does not":     {[]string{`n=1 a=1 zip=1`, `n=2 a=1 zip=2`, `n=1 a=2 zip=1`}, "n", "a", "n | a=1: 1 2 | a=2: 1"},
		"a parameter is shown by the end of its path": {[]string{`n=1 env.a=1`, `n=1 env.a=2`}, "n", "env.a", "n | a=1: 1 | a=2: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, outline(grid(t, tt.cells...).Chart(tt.x, tt.by))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// cross returns cells with all combinations of the numbers below some limits, as parameters
// a, b and so on.
func cross(limits ...int) []string {
	cells := []string{""}
	for i, limit := range limits {
		var more []string
		for _, cell := range cells {
			for v := range limit {
				more = append(more, fmt.Sprintf("%s %c=%d", cell, 'a'+i, v))
			}
		}
		cells = more
	}
	return cells
}

func TestChartsByWhatVaries(t *testing.T) {
	for name, tt := range map[string]struct {
		cells  []string
		want   []string // the first charts
		count  int
		reason string
	}{
		"the number with the most values is the axis":      {[]string{`a="x" n=1 m=1`, `a="y" n=1 m=2`, `a="z" n=2 m=3`}, []string{"m | : 1 2 3"}, 1, ""},
		"else the parameter with the most values":          {[]string{`a="x" b="p"`, `a="y" b="p"`, `a="y" b="q"`, `a="z" b="q"`}, []string{"a [x y z] | b=p: 0 1 | b=q: 1 2"}, 1, ""},
		"a set of one cell has one bar":                    {[]string{`a=1`}, []string{"cell [] | : 0"}, 1, ""},
		"too many lines are several charts":                {cross(30, 12, 3), nil, 3, ""},
		"many parameters are split again":                  {cross(30, 9, 3, 4), nil, 12, ""},
		"too many charts are none":                         {cross(30, 30, 13), nil, 0, "too many values of the parameters for a plot: baictl set results -o svg --metric --by draws some of them"},
		"too many lines by one other parameter are none":   {cross(30, 21), nil, 0, "too many values of the parameters for a plot: baictl set results -o svg --metric --by draws some of them"},
		"a thousand cells of three parameters have charts": {cross(10, 10, 10), nil, 10, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := grid(t, tt.cells...)
			charts, reason := m.Charts()
			if len(charts) != tt.count || reason != tt.reason {
				t.Fatalf("%d charts, reason %q; want %d, %q", len(charts), reason, tt.count, tt.reason)
			}
			for i, want := range tt.want {
				if diff := cmp.Diff(want, outline(charts[i])); diff != "" {
					t.Errorf("chart %d (-want +got):\n%s", i, diff)
				}
			}
			drawAll(t, charts)
		})
	}
}

func drawAll(t *testing.T, charts []plot.Chart) {
	t.Helper()
	for _, c := range charts {
		if _, err := c.SVG(); err != nil {
			t.Errorf("cannot be drawn: %v", err)
		}
	}
}

func TestChartsOfASplitNameTheirPart(t *testing.T) {
	charts, _ := grid(t, cross(30, 12, 3)...).Charts()
	for i, c := range charts {
		if want := fmt.Sprintf("c=%d; medians, n = 1, too few repetitions for intervals", i); c.Subtitle != want {
			t.Errorf("chart %d is %q, want %q", i, c.Subtitle, want)
		}
	}
}

func TestASubtitleSaysWhatIsLacking(t *testing.T) {
	for want, ns := range map[string][]int{
		"medians with 95 % intervals, n = 6":                               {6, 6},
		"medians with 95 % intervals, n = 6 to 8":                          {8, 6},
		"medians with 95 % intervals, n = 3 to 8, 2 without an interval":   {8, 3, 5},
		"medians, n = 2 to 3, too few repetitions for intervals":           {3, 2},
		"medians with 95 % intervals, n = 6, 1 of 3 cells without a value": {6, 0, 6},
	} {
		var cells []InCell
		for _, n := range ns {
			c := InCell{Cell: cellWith(t, "", from(0, n)...)}
			if n > 0 {
				c.Result = c.Cell.GetMetrics()[0]
			}
			cells = append(cells, c)
		}
		if got := subtitle(cells); got != want {
			t.Errorf("%v: %q, want %q", ns, got, want)
		}
	}
}

func TestAMetricWithoutValuesHasNoChart(t *testing.T) {
	m := grid(t, `a=1`, `a=2`)
	for i := range m.Cells {
		m.Cells[i].Result = nil
	}
	if charts, reason := m.Charts(); len(charts) != 0 || !strings.Contains(reason, "no cell has a value") {
		t.Errorf("%d charts, reason %q", len(charts), reason)
	}
}
