package judge

import (
	"math"
	"slices"
)

// A ScaleKind says in which form a change is.
type ScaleKind string

// The kinds of scales.
const (
	// Ratio: a change is new/old - 1. Values are compared by their logarithms.
	Ratio ScaleKind = "ratio"

	// OfBase: a change is the difference new - old, divided by the size of a base. It is
	// that of values that are not all positive.
	OfBase ScaleKind = "of_base"

	// Absolute: a change is the difference new - old, in the unit of the values. It is that
	// of values whose base is 0.
	Absolute ScaleKind = "absolute"
)

// A Scale turns values into numbers whose differences are compared, and such differences
// into changes.
type Scale struct {
	Kind ScaleKind
	Base float64 // the size of the base of an OfBase
}

// ScaleOf returns the scale of values, whose base is the median of the older ones: Ratio
// if all finite values are positive, else OfBase, and Absolute if base is 0 or NaN.
func ScaleOf(base float64, sides ...[]float64) Scale {
	positive := func(side []float64) bool {
		return !slices.ContainsFunc(side, func(v float64) bool { return v <= 0 && !math.IsInf(v, 0) })
	}
	switch {
	case !slices.ContainsFunc(sides, func(side []float64) bool { return !positive(side) }):
		return Scale{Kind: Ratio}
	case base == 0 || math.IsNaN(base):
		return Scale{Kind: Absolute}
	}
	return Scale{Kind: OfBase, Base: math.Abs(base)}
}

// Numbers returns the numbers of the finite values, in their order.
func (s Scale) Numbers(values []float64) []float64 {
	numbers := make([]float64, 0, len(values))
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if s.Kind == Ratio {
			v = math.Log(v)
		}
		numbers = append(numbers, v)
	}
	return numbers
}

// Change returns the change that a difference of two numbers is: 0.02 is 2 % more. One
// that exceeds float64 is the largest there is.
func (s Scale) Change(difference float64) float64 {
	switch s.Kind {
	case Ratio:
		return clamp(math.Expm1(difference))
	case OfBase:
		return clamp(difference / s.Base)
	case Absolute:
	}
	return clamp(difference)
}

// Difference returns the difference of numbers that a change is: the inverse of Change. Of
// a Ratio, changes are above -1.
func (s Scale) Difference(change float64) float64 {
	switch s.Kind {
	case Ratio:
		return math.Log1p(change)
	case OfBase:
		return clamp(change * s.Base)
	case Absolute:
	}
	return change
}

// Estimate returns the change that a difference with an interval is.
func (s Scale) Estimate(e Estimate) Estimate {
	return Estimate{Value: s.Change(e.Value), Interval: Interval{
		Low: s.Change(e.Interval.Low), High: s.Change(e.Interval.High), Level: e.Interval.Level,
	}}
}
