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
)

// Labels of runs that a history reads.
const (
	labelVersion     = "version"      // what is measured, for people
	labelVersionTime = "version_time" // time of RFC 3339 of what is measured
	labelConfirms    = "confirms"     // incident that the run confirms
)

// confirms reports whether a run was made to confirm an incident: such runs are no points.
func confirms(r store.Run) bool { return r.Labels[labelConfirms] != "" }

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
		return cmp.Or(pointTime(a.run).Compare(pointTime(b.run)), cmp.Compare(a.run.ID, b.run.ID))
	})
	builders, known := make(map[string]*series.Builder), images{}
	for i, m := range counted {
		h.Runs = append(h.Runs, historyRun(m, known))
		b, ok := builders[m.run.Cell]
		if !ok {
			b = &series.Builder{Metrics: metrics}
			builders[m.run.Cell] = b
		}
		b.Add(i, m.run, m.summaries)
	}
	for _, cell := range sortedKeys(builders) {
		for _, s := range builders[cell].Series() {
			h.Series = append(h.Series, r.analyse(h, s, cell))
		}
	}
	return h
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// pointTime returns the time by which a run is ordered: that of its firing, else of its label
// version_time, else of its submission.
func pointTime(r store.Run) time.Time {
	if r.Firing != nil {
		return *r.Firing
	}
	if t, err := time.Parse(time.RFC3339, r.Labels[labelVersionTime]); err == nil {
		return t
	}
	return r.Created
}

func historyRun(m member, known images) HistoryRun {
	h := HistoryRun{
		Run: m.run, Time: pointTime(m.run), Version: m.run.Labels[labelVersion], Machine: store.MachineFingerprint(m.environment),
		Descriptor: sum(m.run.Descriptor), Complete: m.summaries == nil || m.summaries.Complete, attributes: attributesOf(m, known),
	}
	h.Image = known.of(m.run.Descriptor)
	for _, p := range m.environment {
		if p.Machine.Node != "" && !slices.Contains(h.Nodes, p.Machine.Node) {
			h.Nodes = append(h.Nodes, p.Machine.Node)
		}
	}
	slices.Sort(h.Nodes)
	return h
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

// stretches splits points where the machine's fingerprint changes. A point whose machine is not
// known belongs to the stretch before it.
func (h History) stretches(points []series.Point) []Level {
	var all []Level
	machine := ""
	for i, p := range points {
		next := h.Runs[p.Index].Machine
		if len(all) == 0 || next != "" && machine != "" && next != machine {
			all = append(all, Level{First: i})
		}
		all[len(all)-1].Last = i
		machine = cmp.Or(next, machine)
	}
	return all
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
func notesOf(found changepoint.Analysis, stretch Level, moved bool) []string {
	lacking := changepoint.MinPoints - (stretch.Last - stretch.First + 1)
	if moved && lacking > 0 {
		return []string{fmt.Sprintf("the machines are others from point %d on: no change is seen before %d more", stretch.First, lacking)}
	}
	return found.Notes
}

// levelsOf returns the levels of a stretch, between its changes, whose rows count from the
// beginning of the stretch.
func (r rules) levelsOf(values []float64, stretch Level, changes []changepoint.Change) []Level {
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
