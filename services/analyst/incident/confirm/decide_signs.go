package confirm

import (
	"math"
	"slices"
)

// alpha is the probability with which each test of a confirmation errs at most, whatever the
// number of its looks.
const alpha = 0.05

// positive reports whether the differences of pairs, in their order, show that the new edition
// has larger values, by a test that looks after each pair, of as many pairs as are planned.
//
// The test is that of the signed ranks (Wilcoxon, 1945). If the editions do not differ, the sign
// of each difference is as likely plus as minus, whatever its size, because the order within
// pairs is random. So after each pair the signs of all pairs have 2^k equally likely forms, and
// the test counts those that it has rejected until then: no more than alpha·(k/planned)^1.5 of
// them (alpha spending; Lan and DeMets, 1983). The count is exact, also with ties. A difference
// of 0 counts as negative.
func positive(differences []float64, planned int) bool {
	differences = differences[:min(len(differences), planned)]
	alive, observed, spent := []uint32{0}, uint32(0), 0.0 // bits are signs; alive are the forms that no look has rejected
	for k := 1; k <= len(differences); k++ {
		forms := make([]uint32, 0, 2*len(alive))
		for _, f := range alive {
			forms = append(forms, f, f|1<<(k-1))
		}
		if differences[k-1] > 0 {
			observed |= 1 << (k - 1)
		}
		ranks := doubledRanks(differences[:k])
		each := math.Pow(2, -float64(k))
		critical, rejected := largest(forms, ranks, int((alpha*math.Pow(float64(k)/float64(planned), 1.5)-spent)/each+rounding))
		if rejected > 0 && sumOf(observed, ranks) >= critical {
			return true
		}
		spent += float64(rejected) * each
		alive = slices.DeleteFunc(forms, func(f uint32) bool { return rejected > 0 && sumOf(f, ranks) >= critical })
	}
	return false
}

// rounding is how far a computed number of forms may be below the whole number that it is.
const rounding = 1e-9

// largest returns the smallest sum of ranks such that at most so many forms have it or a larger
// one, and how many forms these are.
func largest(forms []uint32, ranks []int, most int) (critical, n int) {
	total := 0
	for _, r := range ranks {
		total += r
	}
	counts := make([]int, total+1)
	for _, f := range forms {
		counts[sumOf(f, ranks)]++
	}
	critical = total + 1
	for critical > 0 && n+counts[critical-1] <= most {
		critical--
		n += counts[critical]
	}
	return critical, n
}

// sumOf returns the sum of the ranks whose sign is plus.
func sumOf(form uint32, ranks []int) int {
	sum := 0
	for i, r := range ranks {
		if form&(1<<i) != 0 {
			sum += r
		}
	}
	return sum
}

// doubledRanks returns twice the rank of the size of each value. Equal ones have the mean of
// their ranks.
func doubledRanks(values []float64) []int {
	ranks := make([]int, len(values))
	for i, a := range values {
		for _, b := range values {
			switch {
			case math.Abs(b) < math.Abs(a):
				ranks[i] += 2
			case math.Abs(b) == math.Abs(a):
				ranks[i]++
			}
		}
		ranks[i]++
	}
	return ranks
}

// mayBecomePositive reports whether positive may be true once all planned pairs are there: it is
// if the further differences are larger than all others, and plus.
func mayBecomePositive(differences []float64, planned int) bool {
	best := slices.Clone(differences)
	for len(best) < planned {
		largest := 1.0
		for _, d := range best {
			largest = max(largest, math.Abs(d))
		}
		best = append(best, min(2*largest, math.MaxFloat64))
	}
	return positive(best, planned)
}

// center returns the median of the means of all pairs of values, each with itself, too (Hodges
// and Lehmann, 1963): the shift that the signed ranks estimate.
func center(values []float64) float64 {
	var means []float64
	for i, a := range values {
		for _, b := range values[i:] {
			means = append(means, a/2+b/2)
		}
	}
	slices.Sort(means)
	n := len(means)
	if n == 0 {
		return math.NaN()
	}
	return means[(n-1)/2]/2 + means[n/2]/2
}
