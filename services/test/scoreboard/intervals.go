package main

import "math"

// wilson returns the ends of Wilson's 95 % interval of a share.
func wilson(s share) (low, high float64) {
	const z = 1.959964
	n, p := float64(max(1, s.all)), float64(s.count)/float64(max(1, s.all))
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return middle - half, middle + half
}

// poisson returns the ends of Garwood's exact 95 % interval of the mean of a Poisson
// count: with the lower one, so many or more have a probability of 2.5 %, with the higher
// one, so many or fewer.
func poisson(count int) (low, high float64) {
	const tail = 0.025
	if count > 0 {
		low = meanWhere(count-1, 1-tail)
	}
	return low, meanWhere(count, tail)
}

// meanWhere returns the Poisson mean with which a count or fewer have a probability.
func meanWhere(count int, probability float64) float64 {
	low, high := 0.0, 3*float64(count)+20
	for range 100 {
		middle := (low + high) / 2
		if atMost(count, middle) > probability {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// atMost is the probability of a Poisson count of at most so many.
func atMost(count int, mean float64) float64 {
	sum, logarithm := 0.0, -mean
	for i := 0; ; i++ {
		sum += math.Exp(logarithm)
		if i == count {
			return sum
		}
		logarithm += math.Log(mean) - math.Log(float64(i+1))
	}
}
