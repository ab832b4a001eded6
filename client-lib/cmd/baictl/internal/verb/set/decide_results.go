package set

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/analyst/judge"
)

// metricResults are the results of one metric, with one unit and one set of labels, in all
// cells of a set.
type metricResults struct {
	metric    string
	unit      string
	labels    string // as printer.Labels writes them
	direction judge.Direction
	cells     []cellResult // all cells, in the order of the sweep
	ranked    int          // number of cells that are compared with each other; 0 without a direction
	needed    int          // repetitions of each ranked cell from which on cells can be told apart
}

// cellResult is the result of one metric in one cell.
type cellResult struct {
	cell     *baiv1.CellResult
	result   *baiv1.MetricResult // nil if no repetition has a value
	best     bool                // the cell is the best one, or cannot be told from the best
	unranked int                 // repetitions without which the cell is not ranked
}

// resultsByMetric returns the results of a set by metric, unit and labels. Where a metric
// has a direction and two cells or more can be compared, the best cells are marked.
func resultsByMetric(cells []*baiv1.CellResult) ([]*metricResults, error) {
	j, err := judge.New(judge.Settings{})
	if err != nil {
		return nil, fmt.Errorf("rank the cells: %w", err)
	}
	type key struct{ metric, unit, labels string }
	byKey := make(map[key]*metricResults)
	var all []*metricResults
	for i, cell := range cells {
		for _, r := range cell.GetMetrics() {
			k := key{metric: r.GetMetric(), unit: r.GetUnit()}
			if len(r.GetLabels()) > 0 {
				k.labels = printer.Labels(r.GetLabels())
			}
			m, ok := byKey[k]
			if !ok {
				m = newMetricResults(k.metric, k.unit, k.labels, cells)
				byKey[k], all = m, append(all, m)
			}
			m.direction = cmp.Or(m.direction, judge.Direction(r.GetDirection()))
			m.cells[i].result = r
		}
	}
	slices.SortFunc(all, func(a, b *metricResults) int {
		return cmp.Or(cmp.Compare(a.metric, b.metric), cmp.Compare(a.unit, b.unit), cmp.Compare(a.labels, b.labels))
	})
	for _, m := range all {
		if err := m.rank(j); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func newMetricResults(metric, unit, labels string, cells []*baiv1.CellResult) *metricResults {
	m := &metricResults{metric: metric, unit: unit, labels: labels, cells: make([]cellResult, len(cells))}
	for i, cell := range cells {
		m.cells[i].cell = cell
	}
	return m
}

// hasDirection reports whether some values are better than others.
func (m *metricResults) hasDirection() bool {
	return m.direction == judge.Higher || m.direction == judge.Lower
}

// rank marks the best cells.
func (m *metricResults) rank(j judge.Judge) error {
	if !m.hasDirection() {
		return nil
	}
	var values [][]float64
	var places []int // of the values in m.cells
	for i, c := range m.cells {
		if c.result == nil {
			continue
		}
		one := make([]float64, 0, len(c.result.GetValues()))
		for _, v := range c.result.GetValues() {
			one = append(one, v.GetValue())
		}
		values, places = append(values, one), append(places, i)
	}
	ranking, err := j.Rank(m.direction, values)
	if err != nil {
		return fmt.Errorf("rank the cells by %s: %w", m.metric, err)
	}
	m.needed = ranking.Needed
	for _, r := range ranking.Cells {
		c := &m.cells[places[r.Index]]
		c.best, c.unranked = r.Best, r.Lacking
		if r.Lacking == 0 {
			m.ranked++
		}
	}
	if m.ranked == 1 { // nothing to compare with
		for i := range m.cells {
			m.cells[i].best = false
		}
	}
	return nil
}

// title is "throughput (req/s), higher is better".
func (m *metricResults) title() string {
	title := m.metric
	if m.labels != "" {
		title += " {" + m.labels + "}"
	}
	if m.unit != "" {
		title += " (" + m.unit + ")"
	}
	if m.hasDirection() {
		title += ", " + string(m.direction) + " is better"
	}
	return title
}

// text is "12.3 [11.9, 12.8] n=6": the median of a cell, its interval and the number of
// repetitions. It is empty without a value.
func (c cellResult) text() string {
	if c.result == nil {
		return ""
	}
	text := printer.Number(c.result.GetMedian())
	if i := c.result.GetInterval(); i != nil {
		text += " [" + printer.Number(i.GetLow()) + ", " + printer.Number(i.GetHigh()) + "]"
	}
	return text + " n=" + strconv.Itoa(int(c.result.GetN()))
}

// notes are sentences about what the results of a metric lack.
func (m *metricResults) notes() []string {
	var interval, ranking shortage
	var excluded, most int32
	with := 0 // cells with a value
	for _, c := range m.cells {
		if c.result == nil {
			continue
		}
		with++
		excluded += c.result.GetExcluded()
		most = max(most, c.result.GetN())
		interval.add(int(c.result.GetN()), int(c.result.GetLacking()))
		ranking.add(int(c.result.GetN()), c.unranked)
	}
	var notes []string
	if without := len(m.cells) - with; without > 0 {
		notes = append(notes, fmt.Sprintf("no value yet: %d of %s", without, plural(int32(len(m.cells)), "cell"))) //nolint:gosec // below 2³¹
	}
	if interval.cells > 0 {
		notes = append(notes, "an interval needs "+interval.text(with))
	}
	if ranking.cells > 0 {
		notes = append(notes, "a comparison of cells needs "+ranking.text(with))
	}
	if m.ranked > 1 && int(most) < m.needed {
		notes = append(notes, fmt.Sprintf("%d cells can be told apart from %d repetitions of each on: before, all are best", m.ranked, m.needed))
	}
	if excluded > 0 {
		notes = append(notes, plural(excluded, "value")+" excluded: not a number, or infinite")
	}
	return notes
}

// shortage is how many repetitions cells lack.
type shortage struct {
	needed      int // repetitions of each cell
	cells       int // that lack some
	least, most int // that a cell lacks
}

// add adds a cell with n repetitions, which may lack some.
func (s *shortage) add(n, lacking int) {
	if lacking == 0 {
		return
	}
	if s.cells++; s.cells == 1 {
		s.least = lacking
	}
	s.needed, s.least, s.most = n+lacking, min(s.least, lacking), max(s.most, lacking)
}

// text is "6 repetitions: 1 to 3 are lacking in 2 of 8 cells".
func (s *shortage) text(cells int) string {
	text := fmt.Sprintf("%d repetitions: %d", s.needed, s.least)
	if s.most > s.least {
		text += fmt.Sprintf(" to %d", s.most)
	}
	if s.most == 1 {
		text += " is lacking"
	} else {
		text += " are lacking"
	}
	if s.cells < cells {
		text += fmt.Sprintf(" in %d of %d cells", s.cells, cells)
	}
	return text
}

// setNotes are sentences about repetitions of a set whose values are missing or not of all
// samples.
func setNotes(cells []*baiv1.CellResult) []string {
	var unsummarised, incomplete, skipped int32
	for _, c := range cells {
		unsummarised += c.GetUnsummarised()
		incomplete += c.GetIncomplete()
		skipped += c.GetSkipped()
	}
	var notes []string
	if unsummarised > 0 {
		notes = append(notes, plural(unsummarised, "repetition")+" without a summary: the samples are still being summarised, or there are none")
	}
	if incomplete > 0 {
		notes = append(notes, plural(incomplete, "repetition")+" with samples that never came: the values are those of the others")
	}
	if skipped > 0 {
		notes = append(notes, plural(skipped, "repetition")+" skipped: the cells have enough")
	}
	return notes
}

// withoutSystem returns the results without those of the platform's own measurements, and
// the names of the latter.
func withoutSystem(all []*metricResults) (own []*metricResults, system []string) {
	for _, m := range all {
		if strings.HasPrefix(m.metric, "system.") {
			system = append(system, m.metric)
		} else {
			own = append(own, m)
		}
	}
	return own, slices.Compact(system)
}

// table has one line for each cell.
func (m *metricResults) table() printer.Table {
	t := printer.Table{Columns: []printer.Column{{Title: "CELL", Flex: true}, {Title: "MEDIAN"}}}
	if m.hasDirection() {
		t.Columns = append(t.Columns, printer.Column{Title: "BEST"})
	}
	for _, c := range m.cells {
		row := []string{c.cell.GetName(), c.text()}
		if m.hasDirection() {
			row = append(row, mark(c.best))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func mark(best bool) string {
	if best {
		return "best"
	}
	return ""
}

// pivotTable has one line for each value of the parameter rows, together with those of the
// other parameters that vary, and one column for each value of the parameter columns, or a
// single one if that is empty. No two cells are in one place, because no two cells have all
// parameters in common.
func (m *metricResults) pivotTable(rows, columns string) printer.Table {
	keys := m.rowParameters(rows, columns)
	t := printer.Table{}
	for _, key := range keys {
		t.Columns = append(t.Columns, printer.Column{Title: key, Flex: true})
	}
	rowOf, columnOf := make(map[string]int), make(map[string]int)
	for _, c := range m.cells {
		if text := parameter(c.cell, columns); columnOf[text] == 0 {
			columnOf[text] = len(t.Columns)
			title := "MEDIAN"
			if columns != "" {
				title = columns + "=" + cmp.Or(content(text), "-")
			}
			t.Columns = append(t.Columns, printer.Column{Title: title})
		}
	}
	for _, c := range m.cells {
		texts, shown := make([]string, len(keys)), make([]string, len(t.Columns))
		for i, key := range keys {
			texts[i] = parameter(c.cell, key)
			shown[i] = content(texts[i])
		}
		id := strings.Join(texts, "\n") // no value has a line feed
		row, ok := rowOf[id]
		if !ok {
			row = len(t.Rows)
			rowOf[id], t.Rows = row, append(t.Rows, shown)
		}
		t.Rows[row][columnOf[parameter(c.cell, columns)]] = strings.TrimSpace(c.text() + " " + mark(c.best))
	}
	return t
}

// rowParameters returns the parameters whose values name a row.
func (m *metricResults) rowParameters(rows, columns string) []string {
	keys := []string{rows}
	for _, name := range parameterNames(m.cells) {
		first := parameter(m.cells[0].cell, name)
		varies := slices.ContainsFunc(m.cells, func(c cellResult) bool { return parameter(c.cell, name) != first })
		if varies && name != rows && name != columns {
			keys = append(keys, name)
		}
	}
	return keys
}

// parameterNames returns the names of all parameters of cells, in the order in which they
// come.
func parameterNames(cells []cellResult) []string {
	var names []string
	seen := make(map[string]bool)
	for _, c := range cells {
		for _, p := range c.cell.GetParameters() {
			if !seen[p.GetName()] {
				seen[p.GetName()], names = true, append(names, p.GetName())
			}
		}
	}
	return names
}

// findParameter returns the parameter with a name, or the only one with that last part of
// its path; "" if there is none.
func findParameter(names []string, name string) string {
	if slices.Contains(names, name) {
		return name
	}
	found := ""
	for _, one := range names {
		if strings.HasSuffix(one, "."+name) {
			if found != "" {
				return ""
			}
			found = one
		}
	}
	return found
}

// parameter is the value of a cell's parameter as TOML, "" if the cell has none.
func parameter(cell *baiv1.CellResult, name string) string {
	for _, p := range cell.GetParameters() {
		if p.GetName() == name {
			return p.GetValue()
		}
	}
	return ""
}

// content is the content of a string that is written as TOML on one line, and every other
// value as it is.
func content(text string) string {
	if inner, err := strconv.Unquote(text); err == nil && strings.HasPrefix(text, `"`) {
		return inner
	}
	return text
}
