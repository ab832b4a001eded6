// Package changepoint finds where the level of a series of results changed. It is pure:
// the same values always give the same answer.
//
// # Method
//
// Spikes are taken off. What remains is explained by levels with noise that depends on
// that before it, as an AR(1) process does, and, where that explains it better, a slow
// trend. A change is said where the likelihood improves by more than a penalty, which
// includes the price of having searched, and where ranks alone agree. Nothing is tuned
// to a series. The page docs/detector.md has what it finds and what it says wrongly, by
// kind of noise; docs/statistics.md has the formulas.
//
// A series is analysed in windows of 500 rows with a value, which begin every 250 rows,
// so that a new row never costs more than that.
package changepoint

import "github.com/benchmark-ai/bai/services/analyst/judge"

// Least numbers of points: fewer in a series, or on one side of a change, say nothing.
const (
	MinPoints = 10
	MinSide   = 5
)

// Method names the rules by which changes are found. It changes when other changes are found.
const Method = "segments/2"

// A Kind is the form of a change.
type Kind string

// Kinds of changes.
const (
	Step  Kind = "step"  // from one row to the next
	Drift Kind = "drift" // over several rows
)

// A Change is a change of a series' level. Rows count from 0, and those without a value
// are counted.
type Change struct {
	// Index is the first row of the new level; of a Drift, the first row of it.
	Index int
	Kind  Kind

	// Before and After are the levels on both sides, up to the neighbouring changes and
	// without spikes, in the unit of the series. Of a slow trend they have its value at
	// Index.
	Before float64
	After  float64

	// Shift is After - Before, with an interval of the detector's confidence.
	Shift         float64
	ShiftInterval judge.Interval

	// Magnitude is After/Before - 1, with its interval. All are NaN where Before is 0.
	Magnitude         float64
	MagnitudeInterval judge.Interval

	// P is the probability that a series without a change has one like this anywhere:
	// that the place was searched for is in it.
	P float64

	// First and Last are the rows between which Index may lie: those that are less likely
	// than it by a factor of exp(3.5) at most, whatever the confidence. Both belong to it.
	First int
	Last  int
}

// An Analysis is what a series says.
type Analysis struct {
	Points  int      // rows with a value
	Missing int      // rows without one: NaN or infinite
	Notes   []string // sentences: what was assumed, and why nothing is said
	Changes []Change // in order of their rows
}

// A Detector finds changes. Its methods may be called concurrently.
type Detector struct {
	confidence float64
}

// New returns a Detector with settings, or the error of their Validate.
func New(s judge.Settings) (Detector, error) {
	if err := s.Validate(); err != nil {
		return Detector{}, err
	}
	if s.Confidence == 0 {
		s.Confidence = 0.95
	}
	return Detector{confidence: s.Confidence}, nil
}
