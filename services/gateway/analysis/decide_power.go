package analysis

import (
	"math"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/judge/power"
)

// planPower says what runs can show in each series of a history.
func planPower(p power.Planner, h History, req PowerRequest) Power {
	runs := req.Runs
	if len(runs) == 0 {
		runs = []int{3, 5, 10, 20}
	}
	out := Power{Duration: h.duration(), Cost: h.cost()}
	for _, s := range h.Series {
		if len(req.Metrics) > 0 && !slices.Contains(req.Metrics, s.Metric) {
			continue // it was read for the cost
		}
		newest := s.lastLevel()
		one := SeriesPower{Series: s.Series, Cell: s.Cell, History: p.History(s.Values()[newest.First : newest.Last+1])}
		one.Points = nil
		one.Detectable = p.Smallest(one.History, runs...)
		if req.Effect > 0 {
			needed := p.Needed(one.History, req.Effect)
			one.Needed = &needed
		}
		out.Series = append(out.Series, one)
	}
	return out
}

// duration returns the median of the times that the runs took, from the start of the benchmark's process to the end.
func (h History) duration() time.Duration {
	var all []time.Duration
	for _, r := range h.Runs {
		if r.Started != nil && r.Ended != nil && r.Ended.After(*r.Started) {
			all = append(all, r.Ended.Sub(*r.Started))
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// Spread returns the standard deviation of the values of runs, relative to their median, or in
// the unit of the metric if that is 0. It is NaN where it is not known.
func (s SeriesPower) Spread() float64 {
	if s.History.Lacking > 0 {
		return math.NaN()
	}
	return s.History.Scale.Change(s.History.Noise.Scale)
}
