package compare

import (
	"math"

	"github.com/benchmark-ai/bai/services/analyst/judge"
)

// slack is how far a p-value may exceed the level, relative to it: rounding errors are
// smaller.
const slack = 1e-9

// decide sets the verdict of an analysis, after its p-value was adjusted.
func (c Comparer) decide(a *analysis) {
	switch {
	case a.Test == "":
		a.Verdict, a.Reason = Unclear, FewRuns
	case c.isSame(a):
		a.Verdict = Same
	case a.rejected && a.AdjustedP <= c.level*(1+slack):
		a.Verdict = verdict(a.direction, a.larger)
	case a.rejected:
		a.Verdict, a.Reason = Unclear, ManyMetrics
	default:
		a.Verdict, a.Reason = Unclear, Noise
	}
	if a.Verdict == Unclear {
		a.Needed, a.Shows = c.needed(a)
	}
}

// isSame reports whether the change does not matter, as far as its interval goes. A change
// in the unit of the metric is not compared with one that is relative.
func (c Comparer) isSame(a *analysis) bool {
	if a.exactly {
		return true
	}
	at := a.Change.Interval
	return c.minChange > 0 && a.Scale.Kind != judge.Absolute && -c.minChange <= at.Low && at.High <= c.minChange
}

// verdict returns the verdict on sides that differ, by whether the values of the other one
// are larger.
func verdict(d judge.Direction, larger bool) Verdict {
	switch {
	case d != judge.Higher && d != judge.Lower:
		return Changed
	case (d == judge.Higher) == larger:
		return Better
	}
	return Worse
}

// fewestNoise is how many deviations say how many runs are needed.
const fewestNoise = 5

// needed returns how many runs a side find a change, and which one.
func (c Comparer) needed(a *analysis) (runs int, shows float64) {
	noise := c.judge.Noise(a.levels...)
	if noise.N < fewestNoise {
		return 0, 0
	}
	present := min(a.Base.N, a.Other.N)
	find := func(change float64) int { return c.planner.Runs(noise, a.Scale.Difference(change)) }
	if c.minChange > 0 && a.Scale.Kind != judge.Absolute {
		if runs = find(c.minChange); runs > present || runs == 0 {
			return runs, shown(runs, c.minChange)
		}
	}
	if a.Change == nil {
		return 0, 0
	}
	shows = c.decisive(a)
	if runs = find(shows); runs == 0 {
		return 0, 0
	}
	return max(runs, present+1), shows
}

// decisive returns the size of the change that decides: the observed one, or how far it is
// from one that matters, if that is more.
func (c Comparer) decisive(a *analysis) float64 {
	size := math.Abs(a.Change.Value)
	if a.Scale.Kind == judge.Ratio && a.Change.Value < 0 {
		size = -a.Change.Value / (1 + a.Change.Value) // the increase that takes it back
	}
	if a.Scale.Kind != judge.Absolute {
		size = max(size, c.minChange-math.Abs(a.Change.Value))
	}
	return min(size, math.MaxFloat64)
}

// shown returns the change that runs show, which is none where they are none.
func shown(runs int, change float64) float64 {
	if runs == 0 {
		return 0
	}
	return change
}
