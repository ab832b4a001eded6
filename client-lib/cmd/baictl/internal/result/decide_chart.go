package result

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/internal/plot"
)

// maxCharts is how many charts of one metric Charts returns.
const maxCharts = 12

// Chart returns the chart of a metric by the parameter x: lines if all values of x are
// numbers, else bars. The parameter by, if it is not empty, makes a group for each of its
// values, and so do further parameters that vary, unless those that are named decide their
// values.
func (m *Metric) Chart(x, by string) plot.Chart {
	return m.chart(m.Cells, x, groupParameters(m.Cells, x, by), "")
}

// Charts returns charts by the parameters that vary, or a reason why there are none. Lines
// are drawn by the number with the most values, or else bars by the parameter with the most
// values. Where that makes too many groups there are several charts, one for each value of
// a further parameter.
func (m *Metric) Charts() (charts []plot.Chart, reason string) {
	if !slices.ContainsFunc(m.Cells, func(c InCell) bool { return c.Result != nil }) {
		return nil, "no cell has a value"
	}
	names := varying(m.Cells)
	if len(names) == 0 {
		return []plot.Chart{m.chart(m.Cells, "", nil, "")}, ""
	}
	x := horizontal(m.Cells, names)
	charts = m.split(m.Cells, x, "")
	if len(charts) > maxCharts || slices.ContainsFunc(charts, isTooLarge) {
		return nil, "too many values of the parameters for a plot: baictl set results -o svg --metric --by draws some of them"
	}
	return charts, ""
}

func isTooLarge(c plot.Chart) bool {
	return len(c.Groups) > plot.MaxGroups || len(c.Categories) > plot.MaxCategories
}

// split returns a chart of cells, or one for each value of a parameter if one chart would
// have too many groups. It may return charts that are too large, and too many.
func (m *Metric) split(cells []InCell, x, where string) []plot.Chart {
	groups := groupParameters(cells, x, "")
	one := m.chart(cells, x, groups, where)
	if len(one.Groups) <= plot.MaxGroups || len(groups) < 2 {
		return []plot.Chart{one}
	}
	by := slices.MinFunc(groups, func(a, b string) int { return cmp.Compare(len(values(cells, a)), len(values(cells, b))) })
	parts := values(cells, by)
	if len(parts) > maxCharts {
		return []plot.Chart{one}
	}
	var charts []plot.Chart
	for _, value := range parts {
		var part []InCell
		for _, c := range cells {
			if Parameter(c.Cell, by) == value {
				part = append(part, c)
			}
		}
		charts = append(charts, m.split(part, x, strings.TrimPrefix(where+", "+pair(by, value), ", "))...)
	}
	return charts
}

// chart is a chart of cells by x, with a group for each combination of the values of groups.
func (m *Metric) chart(cells []InCell, x string, groups []string, where string) plot.Chart {
	c := plot.Chart{Title: printer.Clean(m.Title()), XLabel: printer.Clean(cmp.Or(x, "cell")), YLabel: printer.Clean(m.Label())}
	c.Subtitle = strings.TrimPrefix(printer.Clean(where)+"; "+subtitle(cells), "; ")
	isLine := x != "" && isNumeric(cells, x)
	places := make(map[string]float64) // of categories
	at := make(map[string]int)         // of groups
	for _, cell := range cells {
		if cell.Result == nil {
			continue
		}
		name := groupName(cell, groups)
		if _, ok := at[name]; !ok {
			at[name] = len(c.Groups)
			c.Groups = append(c.Groups, plot.Group{Name: printer.Clean(name)})
		}
		g := &c.Groups[at[name]]
		p := point(cell)
		if isLine {
			p.X, _ = numeric(Parameter(cell.Cell, x))
		} else {
			p.X = positionOf(&c, places, category(cell, x))
		}
		g.Points = append(g.Points, p)
	}
	return c
}

// point is the median of a cell with its interval, without a place.
func point(c InCell) plot.Point {
	p := plot.Point{Y: c.Result.GetMedian(), Low: math.NaN(), High: math.NaN()}
	if i := c.Result.GetInterval(); i != nil {
		p.Low, p.High = i.GetLow(), i.GetHigh()
	}
	return p
}

// positionOf returns the position of a category in a chart. A new category comes after the others.
func positionOf(c *plot.Chart, places map[string]float64, name string) float64 {
	at, ok := places[name]
	if !ok {
		at = float64(len(places))
		places[name] = at
		c.Categories = append(c.Categories, printer.Clean(name))
	}
	return at
}

// category is the text of a parameter's value, or the name of the cell.
func category(c InCell, x string) string {
	if x == "" {
		return c.Cell.GetName()
	}
	return cmp.Or(Content(Parameter(c.Cell, x)), "-")
}

func groupName(c InCell, groups []string) string {
	pairs := make([]string, len(groups))
	for i, name := range groups {
		pairs[i] = pair(name, Parameter(c.Cell, name))
	}
	return strings.Join(pairs, ", ")
}

// pair is "num_threads=2": the last part of a parameter's path, and its value.
func pair(name, value string) string {
	return name[strings.LastIndexByte(name, '.')+1:] + "=" + cmp.Or(Content(value), "-")
}

// subtitle says what the points are, and what some of them lack.
func subtitle(cells []InCell) string {
	least, most := int32(math.MaxInt32), int32(0)
	with, without, empty := 0, 0, 0 // with an interval, without one, without a value
	for _, c := range cells {
		if c.Result == nil {
			empty++
			continue
		}
		least, most = min(least, c.Result.GetN()), max(most, c.Result.GetN())
		if c.Result.GetInterval() == nil {
			without++
		} else {
			with++
		}
	}
	n := fmt.Sprintf("n = %d", most)
	if least < most {
		n = fmt.Sprintf("n = %d to %d", least, most)
	}
	text := "medians with 95 % intervals, " + n
	switch {
	case with == 0:
		text = "medians, " + n + ", too few repetitions for intervals"
	case without > 0:
		text += fmt.Sprintf(", %d without an interval", without)
	}
	if empty > 0 {
		text += fmt.Sprintf(", %d of %d cells without a value", empty, len(cells))
	}
	return text
}

// values returns the values of a parameter, in the order in which they come.
func values(cells []InCell, name string) []string {
	var all []string
	seen := make(map[string]bool)
	for _, c := range cells {
		if v := Parameter(c.Cell, name); !seen[v] {
			seen[v], all = true, append(all, v)
		}
	}
	return all
}

// varying returns the parameters that have two values or more.
func varying(cells []InCell) []string {
	return slices.DeleteFunc(ParameterNames(cells), func(name string) bool { return len(values(cells, name)) < 2 })
}

// horizontal returns the parameter by which a chart is drawn.
func horizontal(cells []InCell, names []string) string {
	best, most, number := "", 0, false
	for _, name := range names {
		n, isNumber := len(values(cells, name)), isNumeric(cells, name)
		if isNumber && !number || isNumber == number && n > most {
			best, most, number = name, n, isNumber
		}
	}
	return best
}

// groupParameters returns the parameters that tell apart the cells with one value of x: by,
// if it is not empty, and those that vary and are not decided by x and those before.
func groupParameters(cells []InCell, x, by string) []string {
	var groups []string
	if by != "" {
		groups = []string{by}
	}
	for _, name := range varying(cells) {
		if name != x && name != by && !decides(cells, append([]string{x}, groups...), name) {
			groups = append(groups, name)
		}
	}
	return groups
}

// decides reports whether cells with equal values of some parameters have equal values of
// a further one, too.
func decides(cells []InCell, names []string, further string) bool {
	known := make(map[string]string)
	for _, c := range cells {
		texts := make([]string, len(names))
		for i, name := range names {
			texts[i] = Parameter(c.Cell, name)
		}
		key := strings.Join(texts, "\n") // no value has a line feed
		value := Parameter(c.Cell, further)
		if before, ok := known[key]; ok && before != value {
			return false
		}
		known[key] = value
	}
	return true
}

// isNumeric reports whether each cell has the parameter, with a finite number.
func isNumeric(cells []InCell, name string) bool {
	return !slices.ContainsFunc(cells, func(c InCell) bool {
		_, ok := numeric(Parameter(c.Cell, name))
		return !ok
	})
}

// numeric is the number that a value in TOML is, or that a string has. Zeros before a number
// make it no octal one: "016" is 16.
func numeric(text string) (float64, bool) {
	text = strings.ReplaceAll(Content(text), "_", "")
	x, err := strconv.ParseFloat(text, 64)
	if err != nil { // 0x10, 0o17 or 0b11
		n, err := strconv.ParseInt(text, 0, 64)
		return float64(n), err == nil
	}
	return x, !math.IsInf(x, 0) && !math.IsNaN(x)
}
