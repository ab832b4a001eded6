package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/changepoint"
	"github.com/benchmark-ai/bai/services/gateway/series"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

// History is the series of a task over its runs.
type History struct {
	Series    []SeriesHistory // by cell, metric, unit and labels
	Runs      []HistoryRun    // that are points, the oldest first
	Excluded  int             // runs that are no points
	Truncated bool            // there are older runs
}

// HistoryRun is a run of a history.
type HistoryRun struct {
	store.Run

	Time       time.Time // by which it is ordered
	Version    string
	Machine    string // fingerprint of its machines
	Nodes      []string
	Image      string
	Descriptor string // digest
	Complete   bool   // all of its samples are in its points

	attributes attributes
}

// SeriesHistory is one series over time.
type SeriesHistory struct {
	series.Series // its points have the place of the run in History.Runs

	Cell    string // name of the cell; empty for runs of no set
	Levels  []Level
	Changes []HistoryChange
	Notes   []string
}

// Level is a stretch of points without a change.
type Level struct {
	First, Last int // points
	Median      float64
}

// kindEnvironment is the kind of a change that is not tested: the machines differ.
const kindEnvironment changepoint.Kind = "environment"

// HistoryChange is a change of the level.
type HistoryChange struct {
	changepoint.Change // its rows are points of the series

	Run                         HistoryRun // of the first point of the new level
	VersionBefore, VersionAfter string
	Subjects                    []string // what else differs across it
}

// Confidence is that of all intervals.
const Confidence = 0.95

// Verdict says whether the change is a regression or an improvement by the direction of its
// metric, or a change without one. Other machines are neither.
func (c HistoryChange) Verdict(d judge.Direction) string {
	switch {
	case c.Kind == kindEnvironment || d != judge.Higher && d != judge.Lower:
		return "change"
	case (c.Shift > 0) == (d == judge.Higher):
		return "improvement"
	}
	return "regression"
}

// rules are the rules that histories are analysed with.
type rules struct {
	judge    judge.Judge
	detector changepoint.Detector
	oneUnit  bool // a series whose unit has changed is one
}

// newRules returns the rules, with their defaults.
func newRules() (r rules, err error) {
	if r.judge, err = judge.New(judge.Settings{}); err == nil {
		r.detector, err = changepoint.New(judge.Settings{})
	}
	return r, err
}

// history returns the history of runs.
func (r rules) history(all []member, metrics []string) History {
	var h History
	var counted []member
	for _, m := range all {
		if m.excluded != "" {
			h.Excluded++
			continue
		}
		counted = append(counted, m)
	}
	slices.SortFunc(counted, func(a, b member) int {
		return cmp.Or(a.points.Time.Compare(b.points.Time), cmp.Compare(a.run.ID, b.run.ID))
	})
	builders := make(map[string]*series.Builder)
	for i, m := range counted {
		h.Runs = append(h.Runs, historyRun(m))
		b, ok := builders[m.run.Cell]
		if !ok {
			b = &series.Builder{Metrics: metrics}
			builders[m.run.Cell] = b
		}
		b.AddValues(i, m.points.Points)
	}
	for _, cell := range sortedKeys(builders) {
		all := builders[cell].Series()
		if r.oneUnit {
			all = joinUnits(all)
		}
		for _, s := range all {
			h.Series = append(h.Series, r.analyse(h, s, cell))
		}
	}
	return h
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

func historyRun(m member) HistoryRun {
	p := m.points
	return HistoryRun{
		Run: m.run, Time: p.Time, Version: p.Version, Machine: p.Machine, Nodes: p.Nodes, Image: p.Image, Descriptor: p.Descriptor,
		Complete: p.Complete, attributes: attributesOf(m),
	}
}

// analyse finds the changes of a series. Points on other machines are a stretch of their own:
// no test is made across its ends.
func (r rules) analyse(h History, s series.Series, cell string) SeriesHistory {
	out := SeriesHistory{Series: s, Cell: cell}
	values := s.Values()
	for _, stretch := range h.stretches(s.Points) {
		found := r.detector.Analyse(values[stretch.First : stretch.Last+1])
		levels := r.levelsOf(values, stretch, found.Changes)
		if stretch.First > 0 {
			out.Changes = append(out.Changes, environmentChange(out.lastLevel(), levels[0]))
		}
		for _, c := range found.Changes {
			c.Index, c.First, c.Last = c.Index+stretch.First, c.First+stretch.First, c.Last+stretch.First
			out.Changes = append(out.Changes, HistoryChange{Change: c})
		}
		out.Notes = append(out.Notes, notesOf(found, stretch, stretch.First > 0)...)
		out.Levels = append(out.Levels, levels...)
	}
	for i := range out.Changes {
		h.describe(&out.Changes[i], s.Points)
	}
	return out
}

// stretches splits points where the machine's fingerprint changes.
func (h History) stretches(all []series.Point) []points.Span {
	machines := make([]string, len(all))
	for i, p := range all {
		machines[i] = h.Runs[p.Index].Machine
	}
	return points.Spans(machines)
}

// lastLevel returns the newest level so far.
func (s *SeriesHistory) lastLevel() Level { return s.Levels[len(s.Levels)-1] }

// environmentChange returns the change between two levels that were measured on different
// machines.
func environmentChange(before, after Level) HistoryChange {
	none := judge.Interval{Low: math.NaN(), High: math.NaN()}
	c := changepoint.Change{
		Index: after.First, Kind: kindEnvironment, Before: before.Median, After: after.Median, Shift: after.Median - before.Median,
		Magnitude: math.NaN(), MagnitudeInterval: none, ShiftInterval: none, P: 1, First: after.First, Last: after.First,
	}
	if c.Before != 0 {
		c.Magnitude = c.After/c.Before - 1
	}
	return HistoryChange{Change: c}
}

// notesOf returns the notes about a stretch; moved says that it begins on other machines.
func notesOf(found changepoint.Analysis, stretch points.Span, moved bool) []string {
	lacking := changepoint.MinPoints - (stretch.Last - stretch.First + 1)
	if moved && lacking > 0 {
		return []string{fmt.Sprintf("the machines are others from point %d on: no change is seen before %d more", stretch.First, lacking)}
	}
	return found.Notes
}

// levelsOf returns the levels of a stretch, between its changes, whose rows count from the
// beginning of the stretch.
func (r rules) levelsOf(values []float64, stretch points.Span, changes []changepoint.Change) []Level {
	var all []Level
	first := stretch.First
	for _, c := range changes {
		all = append(all, r.level(values, first, stretch.First+c.Index-1))
		first = stretch.First + c.Index
	}
	return append(all, r.level(values, first, stretch.Last))
}

// level returns the level of a stretch of points.
func (r rules) level(values []float64, first, last int) Level {
	return Level{First: first, Last: last, Median: r.judge.Summarise(values[first : last+1]).Median}
}

// describe adds the runs at a change, and what differs across it.
func (h History) describe(c *HistoryChange, points []series.Point) {
	before, after := h.Runs[points[c.Index-1].Index], h.Runs[points[c.Index].Index]
	c.Run, c.VersionBefore, c.VersionAfter = after, before.Version, after.Version
	for _, d := range differences([]attributes{before.attributes}, []attributes{after.attributes}) {
		c.Subjects = append(c.Subjects, d.Subject)
	}
}
