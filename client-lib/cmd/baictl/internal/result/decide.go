// Package result turns the results of a set's cells into the results of each metric, with
// the best cells marked, and into tables and charts of them.
package result

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/descriptors/sweep"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/analyst/judge"
)

// Metric is the results of one metric, with one unit and one set of labels, in all cells
// of a set.
type Metric struct {
	Name      string
	Unit      string
	Labels    string // as printer.Labels writes them
	Direction judge.Direction
	Cells     []InCell // all cells, in the order of the sweep

	ranked int // number of cells that are compared with each other; 0 without a direction
	needed int // repetitions of each ranked cell from which on cells can be told apart
}

// InCell is the result of one metric in one cell.
type InCell struct {
	Cell   *baiv1.CellResult
	Result *baiv1.MetricResult // nil if no repetition has a value
	Best   bool                // the cell is the best one, or cannot be told from the best
	Place  int                 // in the ranking, from 1; cells with one place are a tie; 0 without one

	unranked int // repetitions without which the cell is not ranked
}

// ByMetric returns the results of a set by metric, unit and labels. Where a metric
// has a direction and two cells or more can be compared, the best cells are marked.
func ByMetric(cells []*baiv1.CellResult) ([]*Metric, error) {
	j, err := judge.New(judge.Settings{})
	if err != nil {
		return nil, fmt.Errorf("rank the cells: %w", err)
	}
	type key struct{ metric, unit, labels string }
	byKey := make(map[key]*Metric)
	var all []*Metric
	for i, cell := range cells {
		for _, r := range cell.GetMetrics() {
			k := key{r.GetMetric(), r.GetUnit(), printer.LabelsKey(r.GetLabels())}
			m, ok := byKey[k]
			if !ok {
				m = newMetric(k.metric, k.unit, printer.Labels(r.GetLabels()), cells)
				byKey[k], all = m, append(all, m)
			}
			m.Direction = cmp.Or(m.Direction, judge.Direction(r.GetDirection()))
			m.Cells[i].Result = r
		}
	}
	slices.SortStableFunc(all, func(a, b *Metric) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Labels, b.Labels))
	})
	for _, m := range all {
		if err := m.rank(j); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func newMetric(metric, unit, labels string, cells []*baiv1.CellResult) *Metric {
	m := &Metric{Name: metric, Unit: unit, Labels: labels, Cells: make([]InCell, len(cells))}
	for i, cell := range cells {
		m.Cells[i].Cell = cell
	}
	return m
}

// HasDirection reports whether some values are better than others.
func (m *Metric) HasDirection() bool {
	return m.Direction == judge.Higher || m.Direction == judge.Lower
}

// rank marks the best cells.
func (m *Metric) rank(j judge.Judge) error {
	if !m.HasDirection() {
		return nil
	}
	var values [][]float64
	var places []int // of the values in m.Cells
	for i, c := range m.Cells {
		if c.Result == nil {
			continue
		}
		one := make([]float64, 0, len(c.Result.GetValues()))
		for _, v := range c.Result.GetValues() {
			one = append(one, v.GetValue())
		}
		values, places = append(values, one), append(places, i)
	}
	ranking, err := j.Rank(m.Direction, values)
	if err != nil {
		return fmt.Errorf("rank the cells by %s: %w", m.Name, err)
	}
	m.needed = ranking.Needed
	for _, r := range ranking.Cells {
		c := &m.Cells[places[r.Index]]
		c.Best, c.unranked = r.Best, r.Lacking
		if r.Lacking == 0 {
			m.ranked++
		}
	}
	if m.ranked == 1 || m.mostRepetitions() < m.needed { // nothing to compare with, or not enough to tell any cells apart
		for i := range m.Cells {
			m.Cells[i].Best = false
		}
		return nil
	}
	m.assignPlaces(ranking.Cells[:m.ranked], places)
	return nil
}

// assignPlaces gives the ranked cells their places: the first to the best, which are a tie, and
// to each other one the place after all cells that are best or have a better median.
func (m *Metric) assignPlaces(ranked []judge.RankedCell, places []int) {
	before, others := 0, 0 // cells before the last other one, and others beside it
	for _, r := range ranked {
		if r.Best {
			before++
		}
	}
	last := math.NaN()
	for _, r := range ranked {
		if r.Best {
			m.Cells[places[r.Index]].Place = 1
			continue
		}
		if r.Summary.Median != last {
			before, others, last = before+others, 0, r.Summary.Median
		}
		m.Cells[places[r.Index]].Place = before + 1
		others++
	}
}

// Label is "throughput {op=read} (req/s)".
func (m *Metric) Label() string {
	label := m.Name
	if m.Labels != "" {
		label += " {" + m.Labels + "}"
	}
	if m.Unit != "" {
		label += " (" + m.Unit + ")"
	}
	return label
}

// mostRepetitions returns the largest number of repetitions of a cell.
func (m *Metric) mostRepetitions() (most int) {
	for _, c := range m.Cells {
		most = max(most, int(c.Result.GetN()))
	}
	return most
}

// Title is "throughput (req/s), higher is better".
func (m *Metric) Title() string {
	if !m.HasDirection() {
		return m.Label()
	}
	return m.Label() + ", " + string(m.Direction) + " is better"
}

// Text is "12.3 [11.9, 12.8] n=6": the median of a cell, its interval and the number of
// repetitions. It is empty without a value.
func (c InCell) Text() string {
	if c.Result == nil {
		return ""
	}
	text := printer.Number(c.Result.GetMedian())
	if i := c.Result.GetInterval(); i != nil {
		text += " [" + printer.Number(i.GetLow()) + ", " + printer.Number(i.GetHigh()) + "]"
	}
	return text + " n=" + strconv.Itoa(int(c.Result.GetN()))
}

// Notes are sentences about what the results of a metric lack.
func (m *Metric) Notes() []string {
	var interval, ranking shortage
	var excluded int32
	cells, with := 0, 0 // of which the set makes runs, and with a value
	for _, c := range m.Cells {
		if !c.Cell.GetNotSelected() {
			cells++
		}
		if c.Result == nil {
			continue
		}
		with++
		excluded += c.Result.GetExcluded()
		interval.add(int(c.Result.GetN()), int(c.Result.GetLacking()))
		ranking.add(int(c.Result.GetN()), c.unranked)
	}
	var notes []string
	if without := cells - with; without > 0 {
		notes = append(notes, fmt.Sprintf("no value yet: %d of %s", without, printer.Plural(cells, "cell")))
	}
	if interval.cells > 0 {
		notes = append(notes, "an interval needs "+interval.text(with))
	}
	if ranking.cells > 0 {
		notes = append(notes, "a comparison of cells needs "+ranking.text(with))
	}
	if m.ranked > 1 && m.mostRepetitions() < m.needed {
		notes = append(notes, fmt.Sprintf("%d cells can be told apart from %d repetitions of each on", m.ranked, m.needed))
	}
	if excluded > 0 {
		notes = append(notes, printer.Plural(excluded, "value")+" excluded: not a number, or infinite")
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

// SetNotes are sentences about repetitions of a set whose values are missing or not of all
// samples.
func SetNotes(cells []*baiv1.CellResult) []string {
	var unsummarised, incomplete, skipped int32
	for _, c := range cells {
		unsummarised += c.GetUnsummarised()
		incomplete += c.GetIncomplete()
		skipped += c.GetSkipped()
	}
	var notes []string
	if unsummarised > 0 {
		notes = append(notes, printer.Plural(unsummarised, "repetition")+
			" without a summary: the samples are still being summarised, or there are none")
	}
	if incomplete > 0 {
		notes = append(notes, printer.Plural(incomplete, "repetition")+" with samples that never came: the values are those of the others")
	}
	if skipped > 0 {
		notes = append(notes, printer.Plural(skipped, "repetition")+" skipped: the cells have enough")
	}
	return notes
}

// WithoutSystem returns the results without those of the platform's own measurements, and
// the names of the latter.
func WithoutSystem(all []*Metric) (own []*Metric, system []string) {
	for _, m := range all {
		if strings.HasPrefix(m.Name, "system.") {
			system = append(system, m.Name)
		} else {
			own = append(own, m)
		}
	}
	return own, slices.Compact(system)
}

// Table has one line for each cell. In a suite the entry has a column of its own, and is not
// in the name of the cell again.
func (m *Metric) Table() printer.Table {
	t := printer.Table{Columns: []printer.Column{{Title: "CELL", Flex: true}, {Title: "MEDIAN"}}}
	entries := slices.ContainsFunc(m.Cells, func(c InCell) bool { return Parameter(c.Cell, sweep.EntryParameter) != "" })
	if entries {
		t.Columns = append([]printer.Column{{Title: "ENTRY", Flex: true}}, t.Columns...)
	}
	if m.HasDirection() {
		t.Columns = append(t.Columns, printer.Column{Title: "BEST"})
	}
	for _, c := range m.Cells {
		row := []string{c.Cell.GetName(), c.Text()}
		if m.HasDirection() {
			row = append(row, mark(c.Best))
		}
		if entries {
			entry, cell, _ := strings.Cut(c.Cell.GetName(), "/")
			row = append([]string{entry, cell}, row[1:]...)
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

// PivotTable has one line for each value of the parameter rows, together with those of the
// other parameters that vary, and one column for each value of the parameter columns, or a
// single one if that is empty. No two cells are in one place, because no two cells have all
// parameters in common.
func (m *Metric) PivotTable(rows, columns string) printer.Table {
	keys := m.rowParameters(rows, columns)
	t := printer.Table{}
	for _, key := range keys {
		t.Columns = append(t.Columns, printer.Column{Title: key, Flex: true})
	}
	rowOf, columnOf := make(map[string]int), make(map[string]int)
	for _, c := range m.Cells {
		if text := Parameter(c.Cell, columns); columnOf[text] == 0 {
			columnOf[text] = len(t.Columns)
			title := "MEDIAN"
			if columns != "" {
				title = columns + "=" + cmp.Or(Content(text), "-")
			}
			t.Columns = append(t.Columns, printer.Column{Title: title})
		}
	}
	for _, c := range m.Cells {
		texts, shown := make([]string, len(keys)), make([]string, len(t.Columns))
		for i, key := range keys {
			texts[i] = Parameter(c.Cell, key)
			shown[i] = Content(texts[i])
		}
		id := strings.Join(texts, "\n") // no value has a line feed
		row, ok := rowOf[id]
		if !ok {
			row = len(t.Rows)
			rowOf[id], t.Rows = row, append(t.Rows, shown)
		}
		t.Rows[row][columnOf[Parameter(c.Cell, columns)]] = strings.TrimSpace(c.Text() + " " + mark(c.Best))
	}
	return t
}

// rowParameters returns the parameters whose values name a row.
func (m *Metric) rowParameters(rows, columns string) []string {
	keys := []string{rows}
	for _, name := range ParameterNames(m.Cells) {
		first := Parameter(m.Cells[0].Cell, name)
		varies := slices.ContainsFunc(m.Cells, func(c InCell) bool { return Parameter(c.Cell, name) != first })
		if varies && name != rows && name != columns {
			keys = append(keys, name)
		}
	}
	return keys
}

// ParameterNames returns the names of all parameters of cells, in the order in which they
// come.
func ParameterNames(cells []InCell) []string {
	var names []string
	seen := make(map[string]bool)
	for _, c := range cells {
		for _, p := range c.Cell.GetParameters() {
			if !seen[p.GetName()] {
				seen[p.GetName()], names = true, append(names, p.GetName())
			}
		}
	}
	return names
}

// FindParameter returns the parameter with a name, or the only one with that last part of
// its path; "" if there is none.
func FindParameter(names []string, name string) string {
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

// Parameter is the value of a cell's parameter as TOML, "" if the cell has none.
func Parameter(cell *baiv1.CellResult, name string) string {
	for _, p := range cell.GetParameters() {
		if p.GetName() == name {
			return p.GetValue()
		}
	}
	return ""
}

// Content is the content of a string that is written as TOML on one line, and every other
// value as it is.
func Content(text string) string {
	if inner, err := strconv.Unquote(text); err == nil && strings.HasPrefix(text, `"`) {
		return inner
	}
	return text
}
