// Package changes says which series of results have changed, and where.
package changes

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/points"
	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/changepoint"
)

// Verdicts on changes.
const (
	Regression  = "regression"
	Improvement = "improvement"
	Undirected  = "change" // nothing says which values are better
)

// A Finding is what a method found in a series.
type Finding struct {
	Notes  []string // sentences
	Events []changepoint.Detection
}

// A SeriesReport is the answer for one series. Its JSON does not change.
type SeriesReport struct {
	Series  string   `json:"series"`
	Points  int      `json:"points"`  // rows with a value
	Missing int      `json:"missing"` // rows without one
	Notes   []string `json:"notes"`
	Changes []Change `json:"changes"` // in order of Index; changes of one row in order of Seen
}

// A Change is a change of a series. Rows count from 0, and those without a value count.
type Change struct {
	Index     int              `json:"index"` // first row of the new level
	Time      string           `json:"time"`  // of that row
	Kind      changepoint.Kind `json:"kind"`
	Direction string           `json:"direction"` // up or down
	Verdict   string           `json:"verdict"`
	Before    *float64         `json:"before"`
	After     *float64         `json:"after"`
	Magnitude *float64         `json:"magnitude"` // after/before - 1; nil where that says nothing
	Interval  *[2]float64      `json:"interval"`  // of the magnitude

	*Difference // where there is no magnitude

	Level *float64 `json:"level"` // confidence of the interval; nil of methods without intervals
	P     *float64 `json:"p"`
	Range [2]int   `json:"range"` // rows between which Index may lie

	*Lifetime   // in a replay
	*Occurrence // of a task on a platform
}

// A Difference is after - before.
type Difference struct {
	Shift         *float64    `json:"shift"`
	ShiftInterval *[2]float64 `json:"shift_interval"`
}

// A Lifetime says with which rows a change was first reported and taken back.
type Lifetime struct {
	Seen      int  `json:"seen"`
	Withdrawn *int `json:"withdrawn"` // nil for a change that stands
}

// Stands says whether the change is part of the answer for the whole series.
func (c *Change) Stands() bool { return c.Lifetime == nil || c.Withdrawn == nil }

// Report makes the answer of a finding. The level is the confidence of its intervals, 0
// without them. A replay shows the lifetimes of changes.
func Report(s *points.TimeSeries, f Finding, level float64, replay bool) SeriesReport {
	r := SeriesReport{
		Series: s.Name, Points: len(s.Values) - s.Missing, Missing: s.Missing,
		Notes: append([]string{}, f.Notes...), Changes: make([]Change, 0, len(f.Events)),
	}
	events := slices.Clone(f.Events)
	slices.SortStableFunc(events, func(a, b changepoint.Detection) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Seen, b.Seen))
	})
	for _, e := range events {
		c := change(s, e.Change, level)
		if replay {
			c.Lifetime = &Lifetime{Seen: e.Seen}
			if e.Withdrawn >= 0 {
				c.Withdrawn = &e.Withdrawn
			}
		}
		r.Changes = append(r.Changes, c)
	}
	return r
}

func change(s *points.TimeSeries, found changepoint.Change, level float64) Change {
	c := Change{
		Index: found.Index, Time: s.Time(found.Index).Format(time.RFC3339Nano), Kind: found.Kind, Direction: "down",
		Before: number(found.Before), After: number(found.After), Magnitude: number(found.Magnitude),
		P: number(found.P), Range: [2]int{found.First, found.Last},
	}
	if found.After > found.Before {
		c.Direction = "up"
	}
	c.Verdict = verdict(s.Better, c.Direction)
	if level > 0 {
		c.Level = &level
	}
	if c.Magnitude == nil {
		c.Difference = &Difference{Shift: number(found.Shift), ShiftInterval: interval(found.ShiftInterval)}
		return c
	}
	c.Interval = interval(found.MagnitudeInterval)
	return c
}

func verdict(better points.Direction, direction string) string {
	switch {
	case better == points.Unknown:
		return Undirected
	case (better == points.Higher) == (direction == "up"):
		return Improvement
	}
	return Regression
}

// number returns nil for a number that JSON does not have.
func number(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// interval returns nil for one without two ends.
func interval(i judge.Interval) *[2]float64 {
	if number(i.Low) == nil || number(i.High) == nil {
		return nil
	}
	return &[2]float64{i.Low, i.High}
}

// Regressions counts the regressions that stand, and the series that have one.
func Regressions(all []SeriesReport) (regressions, series int) {
	for _, r := range all {
		n := 0
		for _, c := range r.Changes {
			if c.Stands() && c.Verdict == Regression {
				n++
			}
		}
		regressions += n
		series += min(n, 1)
	}
	return regressions, series
}
