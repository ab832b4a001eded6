// Package judge computes what the repetitions of cells say: the median of a cell with
// its interval, whether two cells differ, which cells are best, and when a cell has
// enough repetitions. It is pure: the same values always give the same answer.
//
// # Values
//
// One repetition is one value, in the unit of its metric: the median of the samples
// that the repetition emitted. Samples of one run depend on each other, so that their
// number says nothing about how well a repetition can be repeated. Values that are NaN
// or infinite are excluded and counted. No function changes its arguments, and the
// order of values matters to Stopping alone.
//
// # Assumptions
//
// Repetitions are independent of each other and come from one distribution, which may
// have any form. A drift of the machine breaks this; to interleave the cells cancels it
// in comparisons. The page docs/statistics.md has each formula, its source and its limits.
package judge

import (
	"fmt"
	"math"
	"slices"
)

// Settings are the settings of a Judge. The zero value works.
type Settings struct {
	// Confidence is the least probability with which an interval covers its
	// parameter. The level of tests is 1 - Confidence. It is at least 0.5 and less
	// than 1; 0 means 0.95.
	Confidence float64
}

// Validate returns an error that names a setting that is out of its range.
func (s Settings) Validate() error {
	if s.Confidence != 0 && (math.IsNaN(s.Confidence) || s.Confidence < 0.5 || s.Confidence >= 1) {
		return fmt.Errorf("confidence is %v: want at least 0.5, and less than 1", s.Confidence)
	}
	return nil
}

// Judge computes with one confidence. Its methods may be called concurrently.
type Judge struct {
	alpha  float64 // the level of tests
	fewest int     // number of repetitions from which on the median has an interval
}

// New returns a Judge with settings, or the error of their Validate.
func New(s Settings) (Judge, error) {
	if err := s.Validate(); err != nil {
		return Judge{}, err
	}
	if s.Confidence == 0 {
		s.Confidence = 0.95
	}
	j := Judge{alpha: 1 - s.Confidence, fewest: 1}
	for !within(2*math.Exp2(-float64(j.fewest)), j.alpha) {
		j.fewest++
	}
	return j, nil
}

// An Interval is a confidence interval. Its ends belong to it.
type Interval struct {
	Low  float64
	High float64

	// Level is the probability with which the interval covers its parameter, where
	// values are not equal. Equal ones make that of a median larger, and that of a shift
	// an approximation.
	Level float64
}

// slack is how far a probability may exceed its limit, relative to it: the rounding
// errors of a computed probability are smaller.
const slack = 1e-11

// within reports whether a probability is at most limit, but for rounding.
func within(probability, limit float64) bool {
	return probability <= limit*(1+slack)
}

// finite returns the values that are neither NaN nor infinite, sorted, in a slice of
// their own, and the number of the others.
func finite(values []float64) (sorted []float64, excluded int) {
	sorted = make([]float64, 0, len(values))
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			sorted = append(sorted, v)
		}
	}
	slices.Sort(sorted)
	return sorted, len(values) - len(sorted)
}

// median returns the median of sorted values: the mean of the middle two if their
// number is even. Without values it is NaN.
func median(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	a, b := sorted[(n-1)/2], sorted[n/2]
	if a == b {
		return a
	}
	return a/2 + b/2
}
