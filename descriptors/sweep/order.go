package sweep

import (
	"slices"

	"github.com/benchmark-ai/bai/descriptors"
)

// Runs is the number of all runs, those for warming up included.
func (p *Plan) Runs() int { return p.Cells() * (p.sweep.Warmup + p.sweep.Repetitions) }

// Run is a run by its ordinal in the order of submission, from 0. Every repetition of every
// cell has exactly one ordinal, and so has every warm-up run.
func (p *Plan) Run(ordinal int) Run {
	if p.sweep.Order == descriptors.Sequential {
		return p.sequential(ordinal)
	}
	cells, warmup := p.Cells(), p.sweep.Warmup
	if ordinal < cells*warmup {
		return Run{Cell: ordinal / warmup, Repetition: ordinal%warmup + 1, Warmup: true}
	}
	ordinal -= cells * warmup
	if p.sweep.Order == descriptors.Random {
		ordinal = int(p.shuffled[ordinal])
	}
	return Run{Cell: ordinal % cells, Repetition: ordinal/cells + 1}
}

// Ordinal is the ordinal of a run of the plan: the inverse of Run.
func (p *Plan) Ordinal(r Run) int {
	cells, warmup := p.Cells(), p.sweep.Warmup
	switch {
	case p.sweep.Order == descriptors.Sequential && r.Warmup:
		return r.Cell*(warmup+p.sweep.Repetitions) + r.Repetition - 1
	case p.sweep.Order == descriptors.Sequential:
		return r.Cell*(warmup+p.sweep.Repetitions) + warmup + r.Repetition - 1
	case r.Warmup:
		return r.Cell*warmup + r.Repetition - 1
	}
	place := (r.Repetition-1)*cells + r.Cell
	if p.sweep.Order == descriptors.Random {
		place = slices.Index(p.shuffled, uint32(place)) //nolint:gosec // a set has no more runs
	}
	return cells*warmup + place
}

func (p *Plan) sequential(ordinal int) Run {
	each := p.sweep.Warmup + p.sweep.Repetitions
	r := Run{Cell: ordinal / each, Repetition: ordinal%each + 1}
	if r.Warmup = r.Repetition <= p.sweep.Warmup; !r.Warmup {
		r.Repetition -= p.sweep.Warmup
	}
	return r
}

// shuffled are the numbers below n in the order that a seed decides, on every machine and
// in every version the same: for i from n-1 down to 1 the numbers at i and at a place from
// 0 to i change places (Fisher-Yates). The place is a number of SplitMix64, whose state
// begins with the seed, modulo i+1; numbers from which the modulo would not be uniform are
// skipped.
func shuffled(n int, seed uint64) []uint32 {
	all := make([]uint32, n)
	for i := range all {
		all[i] = uint32(i) //nolint:gosec // a set has no more runs
	}
	next := splitMix64(seed)
	for i := n - 1; i > 0; i-- {
		j := below(uint64(i)+1, next)
		all[i], all[j] = all[j], all[i]
	}
	return all
}

// splitMix64 is the generator of Steele, Lea and Flood (2014).
func splitMix64(state uint64) func() uint64 {
	return func() uint64 {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
}

// below is a number below n.
func below(n uint64, next func() uint64) uint64 {
	rest := -n % n // of 2^64 divided by n
	for {
		if r := next(); r >= rest {
			return r % n
		}
	}
}
