package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/gateway/series"
	"github.com/benchmark-ai/bai/services/points"
)

// Ranking is the order of groups of runs.
type Ranking struct {
	Series   []SeriesRanking // by metric, unit and labels
	Runs     int             // that count
	Excluded int             // runs that do not count
	Notes    []string        // what limits the ranking, for people
}

// SeriesRanking is the order of the groups in one series.
type SeriesRanking struct {
	series.Series // without points

	Groups []RankedGroup // the best first
	Needed int           // runs of each group from which on groups can be told apart
}

// RankedGroup is the runs with one value of the attribute.
type RankedGroup struct {
	judge.RankedCell

	Value   string
	Values  []float64 // of the runs, the oldest first
	Samples int64     // of which these are medians
}

// byCell is the attribute that is the cell of a run.
const byCell = "cell"

// labelAttribute begins the name of the attribute that is a label of runs.
const labelAttribute = "label."

// runAttributes are the attributes that runs can be grouped by, beside labels.
func runAttributes() map[string]func(m member) string {
	return map[string]func(m member) string{
		"hardware.instance_type": func(m member) string { return points.InstanceType(m.run) },
		"machine":                func(m member) string { return m.points.Hardware },
		"node":                   func(m member) string { return strings.Join(m.points.Nodes, ", ") },
		"version":                func(m member) string { return m.points.Version },
		"image":                  func(m member) string { return points.ImageText(m.points.PointRun) },
		"data":                   func(m member) string { data, _ := dataTexts(m.run.Data); return data },
		"code":                   func(m member) string { _, code := dataTexts(m.run.Data); return code },
		"descriptor":             func(m member) string { return points.DigestText("sha256", m.points.Descriptor) },
		"platform":               func(m member) string { return m.points.Platform },
		byCell:                   func(m member) string { return m.run.Cell },
	}
}

// attributeNamed returns the function that gives the value of an attribute of a run: "" if the
// run has none. The error is *OperandError.
func attributeNamed(name string) (func(m member) string, error) {
	if key, ok := strings.CutPrefix(name, labelAttribute); ok && key != "" {
		return func(m member) string { return m.run.Labels[key] }, nil
	}
	all := runAttributes()
	if valueOf, ok := all[name]; ok {
		return valueOf, nil
	}
	return nil, &OperandError{
		Field: "by", Message: fmt.Sprintf("is %.100q, which is no attribute of runs", name),
		Remedy: "give one of " + strings.Join(sortedKeys(all), ", ") + ", or label.KEY",
	}
}

// rankGroups ranks the groups of runs. The error is *StateError if there is nothing to rank.
func rankGroups(j judge.Judge, r results, req RankRequest, valueOf func(m member) string) (Ranking, error) {
	out := Ranking{Runs: len(r.members), Excluded: len(r.excluded)}
	values, without := make([]string, len(r.members)), 0
	for i, m := range r.members {
		if values[i] = valueOf(m); values[i] == "" {
			without++
		}
	}
	if without > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d of %d runs left out: their %s is not known", without, len(values), req.By))
	}
	cells := r.cellsBeside(req.By, values)
	for _, s := range r.allSeries(req.Metrics) {
		if s.Direction == "" {
			s.Direction = judge.Direction(descriptors.PlatformDirection(s.Metric))
		}
		if s.Direction == "" {
			out.Notes = append(out.Notes,
				fmt.Sprintf("%s is not ranked: it has no direction (give it one in [[output.metrics]])", s.Metric))
			continue
		}
		ranking, err := rankSeries(j, s, values)
		if err != nil {
			return Ranking{}, err
		}
		if len(ranking.Groups) > 0 {
			out.Series = append(out.Series, ranking)
			out.note(cellsNote(s, values, cells))
		}
	}
	if len(out.Series) == 0 {
		return Ranking{}, &StateError{Message: fmt.Sprintf("%s has nothing to rank by %s%s", r.operand, req.By, because(out.Notes))}
	}
	return out, nil
}

// note adds a note once.
func (r *Ranking) note(text string) {
	if text != "" && !slices.Contains(r.Notes, text) {
		r.Notes = append(r.Notes, text)
	}
}

// cellsBeside returns, for each run, its cell without the attribute, whose value is the run's group.
func (r results) cellsBeside(attribute string, groups []string) []string {
	if attribute == byCell {
		return make([]string, len(r.members))
	}
	runs := make([]groupedRun, len(r.members))
	for i, m := range r.members {
		runs[i] = groupedRun{groups[i], settingsOf(m.run.Cell)}
	}
	return otherCells(runs)
}

// allSeries returns the series of all runs, whatever their cells, each in one unit.
func (r results) allSeries(metrics []string) []series.Series {
	b := series.Builder{Metrics: metrics}
	for i, m := range r.members {
		b.AddValues(i, m.points.Points)
	}
	return joinUnits(b.Series())
}

// rankSeries ranks the groups in one series; attributes are those of the runs, by the index of points.
func rankSeries(j judge.Judge, s series.Series, attributes []string) (SeriesRanking, error) {
	groups := map[string]*RankedGroup{}
	for _, p := range s.Points {
		value := attributes[p.Index]
		if value == "" {
			continue
		}
		g, ok := groups[value]
		if !ok {
			g = &RankedGroup{Value: value}
			groups[value] = g
		}
		g.Values, g.Samples = append(g.Values, p.Value), g.Samples+p.Samples
	}
	names := sortedKeys(groups)
	cells := make([][]float64, len(names))
	for i, name := range names {
		cells[i] = groups[name].Values
	}
	found, err := j.Rank(s.Direction, cells)
	if err != nil {
		return SeriesRanking{}, fmt.Errorf("rank %s: %w", s.Metric, err)
	}
	out := SeriesRanking{Series: s, Needed: found.Needed}
	out.Points = nil
	for _, c := range found.Cells {
		g := *groups[names[c.Index]]
		g.RankedCell = c
		out.Groups = append(out.Groups, g)
	}
	return out, nil
}

// RunCost is what a run of a task costs.
type RunCost struct {
	Amount   float64 // median
	Currency string
	Runs     int // by which it is known
}

// cost returns what a run costs by the newest level of the history, or nil if that is not known,
// or not one amount for all runs.
func (h History) cost() *RunCost {
	of := slices.DeleteFunc(slices.Clone(h.Series),
		func(s SeriesHistory) bool { return s.Metric != descriptors.CostAmount || len(s.Labels) > 0 })
	if len(of) == 0 {
		return nil
	}
	newest := slices.MaxFunc(of, func(a, b SeriesHistory) int { return cmp.Compare(lastRun(a.Series), lastRun(b.Series)) })
	if slices.ContainsFunc(of, func(s SeriesHistory) bool { return s.Cell != newest.Cell }) {
		return nil
	}
	level := newest.lastLevel()
	return &RunCost{Amount: level.Median, Currency: newest.Unit, Runs: level.Last - level.First + 1}
}
