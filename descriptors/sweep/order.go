package sweep

import (
	"slices"
	"sort"

	"github.com/benchmark-ai/bai/descriptors"
)

// layout is where the cells and runs of the entries of a plan are.
type layout struct {
	cells       []int // before each entry, and of all
	runs        []int // likewise
	warmups     []int // likewise
	repetitions int   // of all cells
	rounds      []round
}

// round is some consecutive repetitions of all cells that have as many.
type round struct {
	from, to int   // the numbers of the repetitions: from+1 to to
	before   int   // repetitions of all cells before the round
	entries  []int // those with cells that have the repetitions
	cells    []int // before each of entries, and of all of them
}

func newLayout(entries []entry) layout {
	l := layout{cells: []int{0}, runs: []int{0}, warmups: []int{0}}
	var lengths []int
	for i, e := range entries {
		l.cells = append(l.cells, l.cells[i]+e.cells)
		l.runs = append(l.runs, l.runs[i]+e.cells*(e.warmup+e.repetitions))
		l.warmups = append(l.warmups, l.warmups[i]+e.cells*e.warmup)
		l.repetitions += e.cells * e.repetitions
		lengths = append(lengths, e.repetitions)
	}
	slices.Sort(lengths)
	from, before := 0, 0
	for _, to := range slices.Compact(lengths) {
		r := newRound(entries, from, to, before)
		l.rounds = append(l.rounds, r)
		from, before = to, before+(to-from)*r.cells[len(r.entries)]
	}
	return l
}

func newRound(entries []entry, from, to, before int) round {
	r := round{from: from, to: to, before: before, cells: []int{0}}
	for i, e := range entries {
		if e.repetitions >= to {
			r.cells = append(r.cells, r.cells[len(r.entries)]+e.cells)
			r.entries = append(r.entries, i)
		}
	}
	return r
}

// find is the number of the part that has place i, where before has the places before each
// part, and those of all parts. No part is empty, unless no place is in it.
func find(before []int, i int) int {
	return sort.Search(len(before)-1, func(n int) bool { return before[n+1] > i })
}

// Runs is the number of all runs, those for warming up included.
func (p *Plan) Runs() int { return p.runs[len(p.entries)] }

// Run is a run by its ordinal in the order of submission, from 0. Every repetition of every
// cell has exactly one ordinal, and so has every warm-up run.
func (p *Plan) Run(ordinal int) Run {
	if p.sweep.Order == descriptors.Sequential {
		return p.sequential(ordinal)
	}
	if all := p.warmups[len(p.entries)]; ordinal >= all {
		return p.repetition(ordinal - all)
	}
	n := find(p.warmups, ordinal)
	warmup, inner := p.entries[n].warmup, ordinal-p.warmups[n]
	return Run{Cell: p.cells[n] + inner/warmup, Repetition: inner%warmup + 1, Warmup: true}
}

// repetition is the repetition at a place in the order of the plan, from 0.
func (p *Plan) repetition(place int) Run {
	if p.sweep.Order == descriptors.Random {
		place = int(p.shuffled[place])
	}
	r := p.rounds[sort.Search(len(p.rounds)-1, func(n int) bool { return p.rounds[n+1].before > place })]
	place -= r.before
	cells := r.cells[len(r.entries)]
	n := find(r.cells, place%cells)
	return Run{Cell: p.cells[r.entries[n]] + place%cells - r.cells[n], Repetition: r.from + place/cells + 1}
}

// Ordinal is the ordinal of a run of the plan: the inverse of Run.
func (p *Plan) Ordinal(run Run) int {
	n := find(p.cells, run.Cell)
	e, inner := p.entries[n], run.Cell-p.cells[n]
	switch {
	case p.sweep.Order == descriptors.Sequential && run.Warmup:
		return p.runs[n] + inner*(e.warmup+e.repetitions) + run.Repetition - 1
	case p.sweep.Order == descriptors.Sequential:
		return p.runs[n] + inner*(e.warmup+e.repetitions) + e.warmup + run.Repetition - 1
	case run.Warmup:
		return p.warmups[n] + inner*e.warmup + run.Repetition - 1
	}
	r := p.rounds[sort.Search(len(p.rounds)-1, func(i int) bool { return p.rounds[i].to >= run.Repetition })]
	member, _ := slices.BinarySearch(r.entries, n)
	place := r.before + (run.Repetition-1-r.from)*r.cells[len(r.entries)] + r.cells[member] + inner
	if p.sweep.Order == descriptors.Random {
		place = slices.Index(p.shuffled, uint32(place)) //nolint:gosec // a set has no more runs
	}
	return p.warmups[len(p.entries)] + place
}

func (p *Plan) sequential(ordinal int) Run {
	n := find(p.runs, ordinal)
	e, inner := p.entries[n], ordinal-p.runs[n]
	each := e.warmup + e.repetitions
	r := Run{Cell: p.cells[n] + inner/each, Repetition: inner%each + 1}
	if r.Warmup = r.Repetition <= e.warmup; !r.Warmup {
		r.Repetition -= e.warmup
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
