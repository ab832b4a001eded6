package sequential

import "math"

// rounding is how far a computed probability may be above the exact one.
const rounding = 1e-12

// criticals returns, for each number of pairs up to the given one, the largest sum of the ranks
// of positive differences that is rejected as too small after that many pairs, and -1 where none is.
//
// The state after k pairs is the order of signs: bit i is set if the difference with rank i+1 is
// positive. A further difference has any of the k+1 ranks and either sign with the same
// probability. The orders that no look has rejected keep their probability. A look rejects the
// largest sums with which all looks so far have rejected at most alpha·√(k/MaxPairs). That is
// exact where no two differences are equally large. Ties make the interval wider.
func criticals(alpha float64, pairs int) []int {
	critical, spent, mass := []int{-1}, 0.0, []float64{1}
	for k := 1; k <= pairs; k++ {
		mass = further(mass, k)
		sums := rankSums(k)
		tails := make([]float64, k*(k+1)/2+1)
		for order, p := range mass {
			tails[sums[order]] += p
		}
		most := alpha*math.Sqrt(float64(k)/MaxPairs) + rounding
		largest := -1
		for largest+1 < len(tails) && spent+tails[largest+1] <= most {
			largest++
			spent += tails[largest]
		}
		for order := range mass {
			if int(sums[order]) <= largest {
				mass[order] = 0
			}
		}
		critical = append(critical, largest)
	}
	return critical
}

// further returns the probabilities of all orders of k signs, from those of k-1.
func further(mass []float64, k int) []float64 {
	next := make([]float64, 1<<k)
	each := 1 / float64(2*k)
	for order := range next {
		for rank := range k {
			below := 1<<rank - 1
			next[order] += mass[order&below|order>>1&^below] * each
		}
	}
	return next
}

// rankSums returns the sum of the ranks whose sign is positive, for all orders of k signs.
func rankSums(k int) []uint8 {
	sums := make([]uint8, 1<<k)
	for rank := range k {
		for order := range 1 << rank {
			sums[1<<rank|order] = sums[order] + uint8(rank+1) //nolint:gosec // MaxPairs of them add up to 210
		}
	}
	return sums
}
