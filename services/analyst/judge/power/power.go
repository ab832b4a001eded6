// Package power computes how small a change runs can show: how often comparisons of n runs
// a side find a change, by the very test of judge.Compare, in noise like that of a history.
// It is pure: the same values always give the same answer.
//
// # Method
//
// The noise has the distribution of the history's deviations from their median, between
// which it is interpolated. The power of the exact test of Mann and Whitney in this noise is
// computed by numerical integration, without random numbers: exactly where few pairs of
// values decide, as with up to 7 runs a side at a level of 5 %, else from the exact mean and
// variance of the test's statistic. The page docs/statistics.md has the formulas, and how
// far they are from simulations.
//
// # Assumptions
//
// Future runs are as noisy as those of the history, and a change shifts all of them alike.
package power

import (
	"fmt"
	"math"

	"github.com/benchmark-ai/bai/services/analyst/judge"
)

// Limits of a plan.
const (
	// FewestValues is how many values a history has at least that says how large noise is.
	FewestValues = 10

	// MaxRuns is the largest number of runs a side.
	MaxRuns = 10_000
)

// Settings are the settings of a Planner. The zero value works.
type Settings struct {
	// Confidence is that of the comparisons: as that of judge.Settings.
	Confidence float64

	// Power is the probability with which a comparison finds a change. It is at least 0.1
	// and at most 0.99; 0 means 0.8.
	Power float64
}

// Validate returns an error that names a setting that is out of its range.
func (s Settings) Validate() error {
	if s.Power != 0 && (math.IsNaN(s.Power) || s.Power < 0.1 || s.Power > 0.99) {
		return fmt.Errorf("power is %v: want at least 0.1, and at most 0.99", s.Power)
	}
	return judge.Settings{Confidence: s.Confidence}.Validate()
}

// A Planner computes with one confidence and one power. Its methods may be called
// concurrently.
type Planner struct {
	judge      judge.Judge
	confidence float64
	power      float64
	misordered []int // pairs that may be, by the number of runs a side, where they take long to compute
}

// tabulated is up to how many runs a side a Planner has a table.
const tabulated = 27

// New returns a Planner with settings, or the error of their Validate.
func New(s Settings) (Planner, error) {
	if err := s.Validate(); err != nil {
		return Planner{}, err
	}
	if s.Confidence == 0 {
		s.Confidence = 0.95
	}
	if s.Power == 0 {
		s.Power = 0.8
	}
	j, err := judge.New(judge.Settings{Confidence: s.Confidence})
	p := Planner{judge: j, confidence: s.Confidence, power: s.Power, misordered: make([]int, tabulated+1)}
	for n := range p.misordered {
		p.misordered[n] = j.Misordered(n, n)
	}
	return p, err
}

// A History is what values of runs on one level say about noise.
type History struct {
	// Summary is that of the values.
	Summary judge.Summary

	// Lacking is the number of values without which the history says nothing about noise.
	Lacking int

	// Scale is that of all changes, and Noise that of the numbers of this scale: of a Ratio
	// its Scale is the standard deviation relative to the level.
	Scale judge.Scale
	Noise judge.Noise
}

// A Detectable is the smallest change that runs show.
type Detectable struct {
	Runs int // a side

	// Change is an increase, on the scale of the history. It is nil if so few runs show no
	// change, however large, and if the history lacks values. Its interval says how much
	// the history's noise itself is uncertain, with the confidence. It is 0 if all values
	// of the history are equal.
	Change *judge.Estimate
}

// Needed is how many runs a side show a change.
type Needed struct {
	// Runs is 0 if more than MaxRuns are needed, or none are enough, or the history lacks
	// values.
	Runs int

	// Low and High are the numbers with the ends of the interval of the noise. High is 0 if
	// more than MaxRuns are needed there, and Low as well.
	Low, High int
}

// History returns what values of runs say, which lie on one level, in order of time. Values
// that are NaN or infinite do not count.
func (p Planner) History(values []float64) History {
	h := History{Summary: p.judge.Summarise(values)}
	h.Lacking = max(0, FewestValues-h.Summary.N)
	h.Scale = judge.ScaleOf(h.Summary.Median, values)
	h.Noise = p.judge.Noise(h.Scale.Numbers(values))
	return h
}

// Smallest returns the smallest changes that numbers of runs a side show with the power.
func (p Planner) Smallest(h History, runs ...int) []Detectable {
	all := make([]Detectable, len(runs))
	for i, n := range runs {
		all[i].Runs = n
	}
	if h.Lacking > 0 {
		return all
	}
	noise, factor := quantiles(h.Noise.Deviations), p.uncertainty(h.Noise)
	for i, n := range runs {
		difference, ok := p.smallest(noise, n)
		if !ok {
			continue
		}
		e := h.Scale.Estimate(judge.Estimate{Value: difference, Interval: judge.Interval{
			Low: difference / factor, High: difference * factor, Level: p.confidence,
		}})
		all[i].Change = &e
	}
	return all
}

// Needed returns how many runs a side show a change of a size with the power: an increase
// on the scale of the history, whatever its sign.
func (p Planner) Needed(h History, change float64) Needed {
	if h.Lacking > 0 {
		return Needed{}
	}
	difference, factor := h.Scale.Difference(math.Abs(change)), p.uncertainty(h.Noise)
	noise := quantiles(h.Noise.Deviations)
	return Needed{
		Runs: p.runs(noise, difference),
		Low:  p.runs(noise, difference*factor),
		High: p.runs(noise, difference/factor),
	}
}

// Runs returns how many runs a side show a difference of numbers in a noise with the power,
// or 0 if more than MaxRuns are needed, or nothing is known of the noise.
func (p Planner) Runs(noise judge.Noise, difference float64) int {
	if noise.N == 0 {
		return 0
	}
	return p.runs(quantiles(noise.Deviations), math.Abs(difference))
}
