package otava

// Limits of numpy's sums.
const (
	numpyBuffer   = 8192 // numbers that it takes at once
	numpyPairwise = 128  // numbers up to which it does not divide them into halves
	numpyLanes    = 8    // sums that it has at a time
)

// sum returns the sum of values with numpy's order of additions. Its rounding error is
// that of numpy too.
func sum(values []float64) (s float64) {
	for len(values) > numpyBuffer {
		s += pairwise(values[:numpyBuffer])
		values = values[numpyBuffer:]
	}
	return s + pairwise(values)
}

// pairwise returns the sum of the sums of both halves.
func pairwise(values []float64) float64 {
	n := len(values)
	switch {
	case n < numpyLanes:
		return addTo(0, values)
	case n > numpyPairwise:
		half := n / 2
		half -= half % numpyLanes
		return pairwise(values[:half]) + pairwise(values[half:])
	}
	lanes := [numpyLanes]float64(values)
	rest := values[numpyLanes:]
	for ; len(rest) >= numpyLanes; rest = rest[numpyLanes:] {
		next := (*[numpyLanes]float64)(rest)
		lanes[0] += next[0]
		lanes[1] += next[1]
		lanes[2] += next[2]
		lanes[3] += next[3]
		lanes[4] += next[4]
		lanes[5] += next[5]
		lanes[6] += next[6]
		lanes[7] += next[7]
	}
	s := ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))
	return addTo(s, rest)
}

// addTo adds values to a sum, one after the other.
func addTo(s float64, values []float64) float64 {
	for _, v := range values {
		s += v
	}
	return s
}
