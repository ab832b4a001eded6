package changepoint

import (
	"math"
	"slices"
)

// least is what a candidate gains at least, in variances of the innovations.
const least = 8.0

// segment returns the first rows of all levels but the first, and the criterion with
// them. Candidates come from fits with several autocorrelations; the criterion chooses.
func segment(z []float64) (starts []int, best float64) {
	m := newModel(z)
	best = m.criterion(nil, penalty)
	variance := 0.0
	for t := 1; t < len(z); t++ {
		variance += (z[t] - z[t-1]) * (z[t] - z[t-1]) / 2 / float64(len(z)-1)
	}
	if variance == 0 {
		return nil, best
	}
	var seen [][]int
	s := newSums(z)
	for _, rho := range [...]float64{0, 0.3, 0.6, 0.85} {
		s.fill(rho)
		gain := least * variance * (1 + rho)
		found := s.among(s.candidates(gain), gain)
		if len(found) == 0 || slices.ContainsFunc(seen, func(o []int) bool { return slices.Equal(o, found) }) {
			continue
		}
		seen = append(seen, found)
		if kept, c := m.eliminate(found, penalty); c < best {
			starts, best = kept, c
		}
	}
	if len(starts) == 0 {
		return nil, best
	}
	return starts, m.refine(starts, best)
}

// sums makes the fit of a segment whose noise is AR(1) of its own a matter of a few
// operations.
type sums struct {
	z                 []float64
	linear, quadratic []float64 // of z[t] - rho z[t-1], up to a row
	a, c              float64

	// Terms of the gain of a split at a row, in the numerator of cost: that of the part before it, that of the part from it on, and the
	// rest, which is a square of neither.
	before, from, rest []float64
	inverse            []float64 // of the divisor in cost, by the rows of a segment but one
	estimates          []float64
}

func newSums(z []float64) *sums {
	n := len(z)
	all := make([]float64, 7*n+2)
	take := func(n int) (part []float64) {
		part, all = all[:n:n], all[n:]
		return part
	}
	return &sums{
		z: z, linear: take(n + 1), quadratic: take(n + 1), before: take(n), from: take(n), rest: take(n),
		inverse: take(n), estimates: take(n),
	}
}

// fill makes the sums those of noise with an autocorrelation.
func (s *sums) fill(rho float64) {
	s.a, s.c = 1-rho*rho, 1-rho
	linear, quadratic := 0.0, 0.0
	for t := 1; t < len(s.z); t++ {
		v := s.z[t]
		d := v - rho*s.z[t-1]
		s.before[t] = s.c * linear
		linear += d
		quadratic += d * d
		s.linear[t+1], s.quadratic[t+1] = linear, quadratic
		s.from[t], s.rest[t] = s.a*v-s.c*linear, d*d-s.a*v*v
	}
	for rows := range s.inverse {
		s.inverse[rows] = 1 / (s.a + s.c*s.c*float64(rows))
	}
}

// cost is the sum of squared innovations of the segment from a row up to another.
func (s *sums) cost(from, to int) float64 {
	first := s.z[from]
	num := s.a*first + s.c*(s.linear[to]-s.linear[from+1])
	return s.a*first*first + s.quadratic[to] - s.quadratic[from+1] - num*num/(s.a+s.c*s.c*float64(to-from-1))
}

// candidates are the best splits of intervals of many lengths that gain enough (Kovács et
// al. 2023, Seeded binary segmentation, Biometrika 110).
func (s *sums) candidates(gain float64) []int {
	n := len(s.z)
	var all []int
	for length := float64(n); length >= 2*MinSide; length /= math.Sqrt2 {
		count := int(math.Ceil(2*float64(n)/length)) - 1
		for i := range count {
			from := 0
			if count > 1 {
				from = i * (n - int(length)) / (count - 1)
			}
			if at := s.split(from, from+int(length), gain); at > 0 {
				all = append(all, at)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// split returns the best split of an interval, 0 where none gains enough.
func (s *sums) split(from, to int, gain float64) (best int) {
	rows := to - from - 2*MinSide + 1 // that may begin the second part
	if rows < 1 {
		return 0
	}
	// Estimates of the gain need no division. The gain itself, whose rounded sum decides, is not far from them: only the best estimates
	// matter.
	slack := 1e-9 * (1 + s.quadratic[len(s.z)])
	whole := s.cost(from, to)
	estimates, highest := s.gains(from, to)
	if least := s.a*s.z[from]*s.z[from] - s.quadratic[from+1] + s.quadratic[to] - whole; highest <= gain+least-slack {
		return 0
	}
	for i, estimate := range estimates {
		if estimate < highest-2*slack {
			continue
		}
		at := from + MinSide + i
		if g := whole - s.cost(from, at) - s.cost(at, to); g > gain {
			gain, best = g, at
		}
	}
	return best
}

// gains returns estimates of what the splits of an interval gain, but for a number that is the same for all, and the highest of them.
func (s *sums) gains(from, to int) (estimates []float64, highest float64) {
	rows := to - from - 2*MinSide + 1
	first, last := s.a*s.z[from]-s.c*s.linear[from+1], s.c*s.linear[to]
	lefts := s.before[from+MinSide:][:rows]
	rights, rests, inverse := s.from[from+MinSide:][:rows], s.rest[from+MinSide:][:rows], s.inverse[MinSide-1:][:rows]
	estimates, highest = s.estimates[:rows], math.Inf(-1)
	for i, left := range lefts {
		left += first
		right := rights[i] + last
		e := left*left*inverse[i] + right*right*inverse[rows-1-i] + rests[i]
		estimates[i] = e
		if e > highest {
			highest = e
		}
	}
	return estimates, highest
}

// among returns the segmentation of least cost whose starts are candidates and each cost
// a penalty (Jackson et al. 2005, An algorithm for optimal partitioning).
func (s *sums) among(candidates []int, each float64) []int {
	if len(candidates) == 0 {
		return nil
	}
	ends := append(append([]int{0}, candidates...), len(s.z))
	best, from := make([]float64, len(ends)), make([]int, len(ends))
	for j := 1; j < len(ends); j++ {
		best[j] = math.Inf(1)
		for i := range j {
			if ends[j]-ends[i] < MinSide {
				break
			}
			if c := best[i] + each + s.cost(ends[i], ends[j]); c < best[j] {
				best[j], from[j] = c, i
			}
		}
	}
	var starts []int
	for j := from[len(ends)-1]; j > 0; j = from[j] {
		starts = append(starts, ends[j])
	}
	slices.Reverse(starts)
	return starts
}

// eliminate removes changes, the least one first, as long as the criterion gets smaller.
func (m *model) eliminate(starts []int, each float64) (kept []int, now float64) {
	kept, now = starts, m.criterion(starts, each)
	rest := make([]int, 0, len(starts))
	for len(kept) > 0 {
		worst, best := 0, math.Inf(1)
		for i := range kept {
			rest = append(append(rest[:0], kept[:i]...), kept[i+1:]...)
			if c := m.criterion(rest, each); c < best {
				worst, best = i, c
			}
		}
		if best > now {
			break
		}
		kept, now = slices.Delete(slices.Clone(kept), worst, worst+1), best
	}
	return kept, now
}

// refine moves changes by a few rows where the criterion gets smaller.
func (m *model) refine(starts []int, now float64) float64 {
	const most = 4
	for i := range starts {
		for _, by := range [...]int{-1, 1} {
			for range most {
				starts[i] += by
				if !m.apart(starts, i) {
					starts[i] -= by
					break
				}
				c := m.criterion(starts, penalty)
				if c >= now {
					starts[i] -= by
					break
				}
				now = c
			}
		}
	}
	return now
}

// apart reports whether change i has enough rows on both sides.
func (m *model) apart(starts []int, i int) bool {
	from := 0
	if i > 0 {
		from = starts[i-1]
	}
	return starts[i]-from >= MinSide && m.end(starts, i+1)-starts[i] >= MinSide
}
