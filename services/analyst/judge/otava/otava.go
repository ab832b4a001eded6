// Package otava finds changes of a series' level with the method of Apache Otava 0.8.0
// (formerly Hunter: Fleming et al., ICPE 2023), and finds the same rows. It is pure: the
// same values always give the same answer.
//
// The method has two steps. A divisive search, with the energy distance of Matteson and
// James (2014) and a t-test, looks for weak changes in windows that overlap by half. Then
// changes are removed, the weakest one first, until all that are left have a p-value
// below the limit and a magnitude above the least one.
//
// The rows are those of Series.analyze, and so are its oddities. A removal brings the
// statistics of the two changes after it up to date, but not those of the change before
// it, whose mean after it may therefore be that of a shorter interval. The comparison of
// p-values does not correct for the number of places that were searched. Sums have
// numpy's order of additions, because comparisons of rounded numbers decide.
//
// One thing is not the same. P-values differ from scipy's in the last digits, by up to 1e-11
// of the number. Where two changes have p-values above the limit that are equal but for
// rounding, Otava may remove the other one first, and find other rows. This takes a series
// that repeats itself to the digit.
package otava

import (
	"fmt"
	"math"
)

// Options are the settings of the method. The zero value has Otava's defaults.
type Options struct {
	// P is the limit below which the p-value of a change lies. It is more than 0 and at
	// most 1; 0 means 0.001.
	P float64

	// Window is the number of rows in a window of the search. It is at least 2; 0 means
	// 50. The time for a series grows with its length times Window.
	Window int

	// MinMagnitude is the limit above which the magnitude of a change lies: 0.05 leaves
	// out changes of up to 5%. With 0, which is Otava's default too, every change is
	// large enough whose means differ.
	MinMagnitude float64
}

// A Change is a change of a series' level.
type Change struct {
	// Index is the first row of the new level. Rows count from 0, and those without a
	// result are counted.
	Index int

	// Before and After are the means of the rows on both sides, up to the neighbouring
	// changes that stood when Otava last looked. They are infinite or NaN where the sum
	// of the rows overflows.
	Before float64
	After  float64

	// P is the p-value of Student's t-test, two-sided, with one variance for both sides.
	// Otava keeps a change whose P is NaN, from an overflow, if another one comes first.
	P float64
}

// Find returns the changes of a series in order of their rows. NaN and infinite values are
// rows without a result. As in Otava, such a row has the value of the row before it, and
// the first ones that of the first row with a result. An error names an option that is
// out of its range.
func Find(values []float64, o Options) ([]Change, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	values = filled(values)
	t := &tTest{}
	return merge(t, values, split(t, values, o), o), nil
}

// withDefaults returns the options with Otava's defaults for zero values.
func (o Options) withDefaults() Options {
	if o.P == 0 {
		o.P = 0.001
	}
	if o.Window == 0 {
		o.Window = 50
	}
	return o
}

// validate returns an error that names an option that is out of its range.
func (o Options) validate() error {
	switch {
	case math.IsNaN(o.P) || o.P <= 0 || o.P > 1:
		return fmt.Errorf("p is %v: want more than 0, and at most 1", o.P)
	case o.Window < 2:
		return fmt.Errorf("window is %d: want at least 2 rows", o.Window)
	case math.IsNaN(o.MinMagnitude) || math.IsInf(o.MinMagnitude, 0) || o.MinMagnitude < 0:
		return fmt.Errorf("min magnitude is %v: want a number of at least 0", o.MinMagnitude)
	}
	return nil
}

// weakP returns the limit of the p-values of weak changes, which the search looks for.
func (o Options) weakP() float64 {
	switch {
	case o.P < 0.05:
		return o.P * 10
	case o.P < 0.5:
		return o.P * 2
	}
	return o.P
}

// filled returns a copy of values in which each row has a result. It is empty if no row
// has one.
func filled(values []float64) []float64 {
	rows := make([]float64, len(values))
	first := -1 // the first row with a result
	for i, v := range values {
		switch {
		case !math.IsNaN(v) && !math.IsInf(v, 0):
			rows[i] = v
			if first < 0 {
				first = i
			}
		case first >= 0:
			rows[i] = rows[i-1]
		}
	}
	if first < 0 {
		return nil
	}
	for i := range first {
		rows[i] = rows[first]
	}
	return rows
}
