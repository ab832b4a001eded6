package otava

import (
	"math"
	"slices"
)

// merge returns those of the weak changes at indices that are left after the removal of
// the weakest one, again and again: the one with the largest p-value if that reaches the
// limit, or else the one with the smallest magnitude if that is not above the least one.
func merge(t *tTest, values []float64, indices []int, o Options) []Change {
	changes := make([]Change, len(indices))
	for i, index := range indices {
		changes[i].Index = index
	}
	for i := range changes {
		update(t, values, changes, i)
	}
	for len(changes) > 0 {
		weakest := leastSignificant(changes)
		if changes[weakest].P < o.P {
			weakest = smallest(changes)
			if magnitude(changes[weakest]) > o.MinMagnitude {
				return changes
			}
		}
		changes = slices.Delete(changes, weakest, weakest+1)
		update(t, values, changes, weakest) // and not weakest-1: see the package's comment
		update(t, values, changes, weakest+1)
	}
	return nil
}

// update compares the rows on both sides of a change, up to its neighbours, anew. It does
// nothing if there is no i-th change.
func update(t *tTest, values []float64, changes []Change, i int) {
	if i >= len(changes) {
		return
	}
	start, end := 0, len(values)
	if i > 0 {
		start = changes[i-1].Index
	}
	if i+1 < len(changes) {
		end = changes[i+1].Index
	}
	c := &changes[i]
	c.Before, c.After, c.P = t.compare(values[start:c.Index], values[c.Index:end])
}

// leastSignificant returns the position of the change with the largest p-value, the first
// one of equal ones. As in Python, where values overflow, NaN is larger than nothing and
// nothing is larger than NaN.
func leastSignificant(changes []Change) (at int) {
	for i, c := range changes {
		if c.P > changes[at].P {
			at = i
		}
	}
	return at
}

// smallest returns the position of the change with the smallest magnitude, the first one
// of equal ones, with the same rule for NaN.
func smallest(changes []Change) (at int) {
	least := magnitude(changes[0])
	for i, c := range changes {
		if m := magnitude(c); m < least {
			at, least = i, m
		}
	}
	return at
}

// magnitude returns the larger one of the relative changes forwards and backwards. One
// that has a base of 0 counts as 0.
func magnitude(c Change) float64 {
	forwards, backwards := relative(c.Before, c.After), relative(c.After, c.Before)
	if backwards > forwards {
		return backwards
	}
	return forwards // even if it is NaN, which the built-in max would not leave to it alone
}

// relative returns how far a value is from a base, relative to it, without a sign.
func relative(base, value float64) float64 {
	if base == 0 {
		return 0
	}
	return math.Abs(value/base - 1)
}
