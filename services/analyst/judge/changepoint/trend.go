package changepoint

// trendPenalty is what each degree of a trend must improve the criterion by.
const trendPenalty = 9.0

// trending tries whether a slow trend explains what was found better than steps do, and
// returns what holds: the starts, and the trend, nil where there is none.
func trending(z []float64) (starts []int, trend []float64) {
	starts, best := segment(z)
	if len(starts) == 0 {
		return nil, nil
	}
	for degree := 1; degree <= 2; degree++ {
		var with []int
		for range 2 { // the second time beside the steps that the first has left
			t := polynomial(z, with, degree)
			rest, c := segment(minus(z, t))
			if c += trendPenalty * float64(degree); c < best {
				starts, best, trend = rest, c, t
			}
			if len(rest) == 0 {
				break
			}
			with = rest
		}
	}
	return starts, trend
}

// polynomial returns the polynomial that fits z beside steps at starts. Its mean is 0.
func polynomial(z []float64, starts []int, degree int) []float64 {
	n := len(z)
	trend := make([]float64, n)
	residuals := centered(z, starts)
	var basis, within [][]float64 // whole, and beside the steps
	for d := 1; d <= degree; d++ {
		p := make([]float64, n)
		for t := range p {
			x := 2*float64(t)/float64(n-1) - 1
			if p[t] = x; d == 2 {
				p[t] = x*x - 1.0/3
			}
		}
		q := centered(p, starts)
		for i := range basis {
			f := dot(q, within[i]) / dot(within[i], within[i])
			add(q, -f, within[i])
			add(p, -f, basis[i])
		}
		if norm := dot(q, q); norm > 0 {
			add(trend, dot(q, residuals)/norm, p)
			basis, within = append(basis, p), append(within, q)
		}
	}
	return trend
}

// centered returns z minus the mean of each segment.
func centered(z []float64, starts []int) []float64 {
	out := make([]float64, len(z))
	from := 0
	for k := range len(starts) + 1 {
		to := len(z)
		if k < len(starts) {
			to = starts[k]
		}
		mean := mean(z[from:to])
		for t := from; t < to; t++ {
			out[t] = z[t] - mean
		}
		from = to
	}
	return out
}

func mean(z []float64) float64 {
	sum := 0.0
	for _, v := range z {
		sum += v
	}
	return sum / float64(len(z))
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

func add(a []float64, f float64, b []float64) {
	for i, v := range b {
		a[i] += f * v
	}
}

func minus(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i, v := range a {
		out[i] = v - b[i]
	}
	return out
}
