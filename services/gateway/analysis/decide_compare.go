package analysis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/analyst/judge/compare"
	"github.com/benchmark-ai/bai/services/gateway/series"
)

// results are the runs of a side that count, with their series.
type results struct {
	side

	members  []member // that count
	excluded []Excluded
}

// Excluded is a run that does not count.
type Excluded struct {
	Run    string
	Reason string
}

// newResults returns the results of a side.
func newResults(s side, all []member) results {
	r := results{side: s}
	for _, m := range all {
		if m.excluded != "" {
			r.excluded = append(r.excluded, Excluded{m.run.ID, m.excluded})
			continue
		}
		r.members = append(r.members, m)
	}
	return r
}

// has reports whether a run is one of the side's.
func (r results) has(id string) bool {
	return slices.ContainsFunc(r.members, func(m member) bool { return m.run.ID == id })
}

// series returns the series of the runs of a cell, each in one unit.
func (r results) series(cell string, metrics []string) []series.Series {
	b := series.Builder{Metrics: metrics}
	for i, m := range r.members {
		if m.run.Cell == cell {
			b.AddValues(i, m.points.Points)
		}
	}
	return joinUnits(b.Series())
}

// attributes returns the attributes of the runs.
func (r results) attributes() []attributes {
	all := make([]attributes, len(r.members))
	for i, m := range r.members {
		all[i] = attributesOf(m)
	}
	return all
}

// checkComparable returns *StateError if two sides cannot be compared.
func checkComparable(base, other results) error {
	for _, r := range []results{base, other} {
		if len(r.members) > 0 {
			continue
		}
		reason := r.excluded[0].Reason
		if n := len(r.excluded); n > 1 {
			reason = fmt.Sprintf("none of its %d runs counts: of run %s, %s", n, r.excluded[0].Run, reason)
		}
		return &StateError{Message: fmt.Sprintf("%s has no results to compare: %s (name runs that succeeded)", r.operand, reason)}
	}
	return checkCells(base, other)
}

// Comparison is how two sides differ.
type Comparison struct {
	Old, New    ComparedSide
	Series      []SeriesComparison // by cell, metric, unit and labels
	Differences []Difference
	Notes       []string // what limits the comparison, for people
}

// ComparedSide is the runs of one side.
type ComparedSide struct {
	Operand  string
	Runs     []string // IDs of those that count, the oldest first
	Excluded []Excluded
}

// SeriesComparison is the difference in one series.
type SeriesComparison struct {
	series.Series // without points

	Cell                 string    // its name; empty where each side has one cell, unless both are sets
	OldValues, NewValues []float64 // of the runs, the oldest first
	compare.Comparison
}

// compareSides compares the series of two sides; before is the history before them. The error is
// *StateError if they have no series in common.
func compareSides(c compare.Comparer, base, other results, all paired, before past) (Comparison, error) {
	out := Comparison{
		Old: base.describe(), New: other.describe(), Differences: differences(base.attributes(), other.attributes()), Notes: all.notes,
	}
	if len(all.pairs) == 0 {
		return Comparison{}, &StateError{Message: fmt.Sprintf("%s and %s have no metric in common%s", base.operand,
			other.operand, because(out.Notes))}
	}
	inputs := make([]compare.Metric, len(all.pairs))
	for i, p := range all.pairs {
		out.Series = append(out.Series,
			SeriesComparison{Series: p.series(), Cell: p.cell.name, OldValues: p.base.Values(), NewValues: p.other.Values()})
		inputs[i] = p.metric(before.level(p.base, p.cell.base))
	}
	for _, platform := range []bool{false, true} {
		out.compareFamily(c, inputs, platform)
	}
	if !before.known {
		for i := range out.Series {
			out.Series[i].LackingHistory = 0 // no run would make one
		}
	}
	return out, nil
}

// compareFamily compares the series of the benchmark, or those that the platform measures. The
// more series are compared together, the clearer a change has to be: those of the platform, which
// each run has, do not make the benchmark's less clear.
func (o *Comparison) compareFamily(c compare.Comparer, inputs []compare.Metric, platform bool) {
	var family []compare.Metric
	var at []int
	for i := range o.Series {
		if series.OfPlatform(o.Series[i].Metric) == platform {
			family, at = append(family, inputs[i]), append(at, i)
		}
	}
	for i, found := range c.Compare(family...) {
		o.Series[at[i]].Comparison = found
	}
}

func because(notes []string) string {
	if len(notes) == 0 {
		return " (leave out --metric for all)"
	}
	return ": " + strings.Join(notes, "; ")
}

func (r results) describe() ComparedSide {
	s := ComparedSide{Operand: r.operand, Excluded: r.excluded}
	for _, m := range r.members {
		s.Runs = append(s.Runs, m.run.ID)
	}
	return s
}

// maxNamed is how many names a note has.
const maxNamed = 5

// aloneNotes returns the note about cells or metrics that only one side has, if there are any.
func aloneNotes(kind, operand string, names []string) []string {
	if len(names) == 0 {
		return nil
	}
	if len(names) > 1 {
		kind += "s"
	}
	return []string{fmt.Sprintf("only %s has %s %s", operand, kind, listed(names))}
}

// listed returns the first names, and how many more there are.
func listed(names []string) string {
	if n := len(names); n > maxNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), n-maxNamed)
	}
	return strings.Join(names, ", ")
}

// past is the history before a comparison.
type past struct {
	History

	known bool // it is that of a task, and was read
}

// level returns the values of the newest level of a series in the history, in the unit of s.
func (h History) level(s series.Series, cell string) []float64 {
	var all []series.Series
	var newest []Level
	for _, one := range h.Series {
		if one.Cell == cell {
			all, newest = append(all, one.Series), append(newest, one.lastLevel())
		}
	}
	i := matches(all, []series.Series{s})[0]
	if i < 0 {
		return nil
	}
	return converted(all[i], s.Unit).Values()[newest[i].First : newest[i].Last+1]
}
