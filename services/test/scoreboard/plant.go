package main

import (
	"math"
	"math/rand/v2"
)

// classes is the number of classes of sizes.
const classes = 4

// A planted is a change of level that was added to a series.
type planted struct {
	at    int     // its first row
	end   int     // of a ramp, the row after it; of a step, 0
	size  float64 // in standard deviations of the noise
	shift float64 // the same in the unit of the rows
}

// class is the place of the change among 1 to 2 standard deviations, 2 to 3, 3 to 4, 4 to 5.
func (p planted) class() int { return min(int(math.Abs(p.size))-1, classes-1) }

// ramp reports whether the change takes more than one row.
func (p planted) ramp() bool { return p.end > 0 }

// near reports whether a row counts as a hit of the change.
func (p planted) near(row int) bool {
	const margin = 3
	return row >= p.at-margin && row <= max(p.at, p.end)+margin
}

// reached is the share of the change that a row has.
func (p planted) reached(row int) float64 {
	switch {
	case row < p.at:
		return 0
	case row < p.end:
		return float64(row-p.at+1) / float64(p.end-p.at+1)
	}
	return 1
}

// An example is a series, and the changes that are planted in it.
type example struct {
	rows    []float64
	planted []planted
}

// Examples are the series of one family. All methods get the same ones.
type examples struct {
	still   []example // without a change
	changed []example
	grow    []example // without a change; a replay takes them row by row
	steps   []example // with one step of 3 standard deviations
}

// newExamples draws the series of a family. The same seed gives the same series.
func newExamples(f family, seed uint64, s sizes) examples {
	var all examples
	lengths := [...]int{40, 100, 200, 400}
	draw := func(stream uint64, count int, lengths []int, plant func(*rand.Rand, int) []planted) []example {
		r := rand.New(rand.NewPCG(seed, stream))
		drawn := make([]example, count)
		for i := range drawn {
			drawn[i] = newExample(r, f, lengths[i%len(lengths)], plant)
		}
		return drawn
	}
	all.still = draw(1, s.still, lengths[:], nothing)
	all.changed = draw(2, s.changed, lengths[1:], changes)
	all.grow = draw(3, s.grow, lengths[:3], nothing)
	all.steps = draw(4, s.steps, []int{120}, oneStep)
	return all
}

// newExample draws noise of a family, plants changes in it, and gives it the level 100 and
// a unit of its own.
func newExample(r *rand.Rand, f family, rows int, plant func(*rand.Rand, int) []planted) example {
	s := example{rows: f.draw(r, rows)}
	s.planted = plant(r, rows)
	unit := math.Ldexp(1+r.Float64(), r.IntN(6)-3) // the same number on every machine
	for i, v := range s.rows {
		for _, p := range s.planted {
			v += float64(p.size * p.reached(i))
		}
		s.rows[i] = 100 + float64(unit*v)
	}
	for i := range s.planted {
		s.planted[i].shift = unit * s.planted[i].size
	}
	return s
}

func nothing(*rand.Rand, int) []planted { return nil }

func oneStep(r *rand.Rand, _ int) []planted {
	return []planted{{at: 40 + r.IntN(40), size: 3}}
}

// changes plants a step in half of the series, a ramp in a quarter, and a step there and
// back in the others.
func changes(r *rand.Rand, rows int) []planted {
	switch r.IntN(4) {
	case 0, 1:
		return []planted{{at: 15 + r.IntN(rows-30), size: size(r, 1)}}
	case 2:
		length := 4 + r.IntN(8)
		at := 15 + r.IntN(rows-30-length)
		return []planted{{at: at, end: at + length, size: size(r, 2)}}
	}
	length := 10 + r.IntN(20)
	at := 12 + r.IntN(rows-24-length)
	there := size(r, 1.5)
	return []planted{{at: at, size: there}, {at: at + length, size: -there}}
}

// size returns a size between the least one and 5, up or down.
func size(r *rand.Rand, least float64) float64 {
	s := least + float64((5-least)*r.Float64())
	if r.IntN(2) == 0 {
		return -s
	}
	return s
}
