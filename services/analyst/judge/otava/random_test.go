package otava_test

import "math"

// A random is splitmix64. Its sibling is in testdata/make.py.
type random struct{ state uint64 }

func (r *random) next() uint64 {
	r.state += 0x9E3779B97F4A7C15
	z := r.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// normal returns a number of a distribution that is almost the normal one.
func (r *random) normal() float64 {
	total := 0.0
	for range 12 {
		total += float64(float64(r.next()>>11) * 0x1p-53)
	}
	return total - 6
}

// randomSeries returns the series of a seed, which is the one that testdata/make.py makes of
// it: there are ten kinds, by the seed's last digit.
func randomSeries(seed uint64) (values []float64) {
	r := &random{seed}
	length := 5 + int(r.next()%396) //nolint:gosec // it is small
	step := []float64{0, 1, 3, 10}[r.next()%4]
	level, noise := 0.0, 0.0
	for row := range length {
		if r.next()%40 == 0 {
			level += float64(step * r.normal())
		}
		absent := r.next()%4 == 0
		e := r.normal()
		noise = float64(0.7*noise) + e
		values = append(values, result(seed%10, row, level, noise, e, absent))
	}
	return values
}

// result returns the value of a row, given its level, its noise with and without memory,
// and whether it is one of the rows that a series with missing rows lacks.
func result(kind uint64, row int, level, noise, e float64, absent bool) float64 {
	switch kind {
	case 1: // autoregressive
		return 100 + level + noise
	case 2: // integer
		return math.Floor(level + e)
	case 3: // constant parts
		if row/25%2 == 0 {
			return level
		}
		return level + e
	case 4: // constant but for steps
		return 100 + level
	case 5: // missing
		if absent {
			return math.NaN()
		}
	case 6: // huge
		return float64((level + e) * 1e300)
	case 7: // too large for sums
		return float64((level + e) * 1e307)
	case 8: // tiny
		return float64((level + e) * 1e-320)
	case 9: // skewed
		return float64(float64(e*e)*e) + level
	}
	return 100 + level + e
}

// noisy returns a series of a length with a step every 100 rows.
func noisy(seed uint64, length int) []float64 {
	r := &random{seed}
	values := make([]float64, length)
	for i := range values {
		values[i] = 100 + 2*float64(i/100%2) + r.normal()
	}
	return values
}
