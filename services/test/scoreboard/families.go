package main

import (
	"math"
	"math/rand/v2"
)

// A noise draws the rows of a series without a change. Its mean is about 0 and its
// standard deviation about 1; a row without a result is NaN.
type noise func(r *rand.Rand, rows int) []float64

// A family is a kind of noise that series of results have.
type family struct {
	name string
	is   string // a phrase that says what it is
	draw noise
}

// families returns all families. The place of a family is part of its seed: new ones come last.
func families() []family {
	return []family{
		{"normal", "independent rows, normally distributed", independent(normal)},
		{"AR(1) 0.3", "each row keeps 0.3 of how far the row before it was from the mean", autoregressive(0.3)},
		{"AR(1) 0.5", "the same with 0.5", autoregressive(0.5)},
		{"AR(1) 0.8", "the same with 0.8", autoregressive(0.8)},
		{"heavy tails", "Student's t with 3 degrees of freedom", independent(student)},
		{"skew", "exponentially distributed", independent(exponential)},
		{"two modes", "two levels that are 3 apart, for noise of 1, each for half of the rows", independent(modes(0.5))},
		{"two modes, one rare", "the same, the upper level for a fifth of the rows", independent(modes(0.2))},
		{"weekly season", "two rows of each seven are higher, by 1.3 for noise of 0.8", weekly},
		{"slow drift", "a straight line of up to 0.02 a row, up or down, and normal noise", drift},
		{"bursts", "normal noise; with 2 % of the rows a burst of 1 to 4 rows begins, which are higher by 4 to 10", bursts},
		{"ties", "normal noise, rounded to whole numbers", ties},
		{"gaps", "normal noise; with 5 % of the rows a gap of 1 to 6 rows without a result begins", gaps},
		{"spread changes", "the spread is 0.5 and then 1.5, or 1.5 and then 0.5; the level stays", spreads},
		{
			"mixture AR, bursts", "the sum of AR(1) 0.5 and bursts, over the root of 2, as all mixtures",
			mixture(autoregressive(0.5), bursts),
		},
		{"mixture season, tails", "the sum of the weekly season and heavy tails", mixture(weekly, independent(student))},
		{"mixture drift, gaps", "the sum of the slow drift and gaps", mixture(drift, gaps)},
		{"mixture modes, AR", "the sum of two modes and AR(1) 0.5", mixture(independent(modes(0.5)), autoregressive(0.5))},
	}
}

func normal(r *rand.Rand) float64 { return r.NormFloat64() }

func exponential(r *rand.Rand) float64 { return r.ExpFloat64() - 1 }

func independent(draw func(*rand.Rand) float64) noise {
	return func(r *rand.Rand, n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = draw(r)
		}
		return x
	}
}

// student is Student's t with 3 degrees of freedom, whose variance is 3.
func student(r *rand.Rand) float64 {
	a, b, c := r.NormFloat64(), r.NormFloat64(), r.NormFloat64()
	return r.NormFloat64() / math.Sqrt(float64(a*a)+float64(b*b)+float64(c*c))
}

// modes are two levels of which the upper one has a share of the rows.
func modes(share float64) func(*rand.Rand) float64 {
	const apart = 3
	sd := math.Sqrt(1 + float64(apart*apart*share*(1-share)))
	return func(r *rand.Rand) float64 {
		v := r.NormFloat64() - float64(apart*share)
		if r.Float64() < share {
			v += apart
		}
		return v / sd
	}
}

// autoregressive is normal noise that remembers: its correlation with the row before is rho.
func autoregressive(rho float64) noise {
	return func(r *rand.Rand, n int) []float64 {
		x, v, fresh := make([]float64, n), r.NormFloat64(), math.Sqrt(1-float64(rho*rho))
		for i := range x {
			x[i] = v
			v = float64(rho*v) + float64(fresh*r.NormFloat64())
		}
		return x
	}
}

func weekly(r *rand.Rand, n int) []float64 {
	x, phase := make([]float64, n), r.IntN(7)
	for i := range x {
		x[i] = float64(0.8 * r.NormFloat64())
		if (i+phase)%7 < 2 {
			x[i] += 1.3
		}
		x[i] -= 1.3 * 2 / 7
	}
	return x
}

func drift(r *rand.Rand, n int) []float64 {
	x, slope := make([]float64, n), (2*r.Float64()-1)*0.02
	for i := range x {
		x[i] = r.NormFloat64() + float64(slope*(float64(i)-float64(n)/2))
	}
	return x
}

func bursts(r *rand.Rand, n int) []float64 {
	x := independent(normal)(r, n)
	for i := 0; i < n; i++ {
		if r.Float64() >= 0.02 {
			continue
		}
		size := 4 + float64(6*r.Float64())
		for end := i + 1 + r.IntN(4); i < end; i++ {
			if i < n {
				x[i] += size
			}
		}
	}
	return x
}

func ties(r *rand.Rand, n int) []float64 {
	x := independent(normal)(r, n)
	for i := range x {
		x[i] = math.Round(x[i])
	}
	return x
}

func gaps(r *rand.Rand, n int) []float64 {
	x := independent(normal)(r, n)
	for i := 0; i < n; i++ {
		if r.Float64() >= 0.05 {
			continue
		}
		for end := i + 1 + r.IntN(6); i < end; i++ {
			if i < n {
				x[i] = math.NaN()
			}
		}
	}
	return x
}

func spreads(r *rand.Rand, n int) []float64 {
	x, at := make([]float64, n), n/4+r.IntN(n/2+1)
	a, b := 0.5, 1.5
	if r.IntN(2) == 0 {
		a, b = b, a
	}
	for i := range x {
		if x[i] = a * r.NormFloat64(); i >= at {
			x[i] = b * r.NormFloat64()
		}
	}
	return x
}

// mixture is the sum of two kinds of noise, scaled to the same spread.
func mixture(a, b noise) noise {
	return func(r *rand.Rand, n int) []float64 {
		x, y := a(r, n), b(r, n)
		for i := range x {
			x[i] = (x[i] + y[i]) / math.Sqrt2
		}
		return x
	}
}
