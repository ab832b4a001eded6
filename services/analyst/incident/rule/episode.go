package rule

import (
	"math"

	"github.com/benchmark-ai/bai/services/analyst/judge"
)

// back is how many consecutive good points end an episode: one may be luck.
const back = 3

// An episode is a stretch of rows in which the condition of a rule holds, by the rows alone.
type episode struct {
	first, bad, last int // rows: the first bad one is bad, and lies from first to last
	newest           int // row: the newest one that is bad, or that the episode is known to go on at
	end              int // row with which it was over; -1 while it goes on
	why              string

	kind          string
	up            bool
	before, after float64
	magnitude     float64 // NaN without one
	interval      judge.Interval
	p             float64

	sure  bool // it needs no further point
	small bool // the change is smaller than the rule asks for
}

// open is an episode that begins at a row.
func open(bad int) episode {
	none := judge.Interval{Low: math.NaN(), High: math.NaN()}
	return episode{
		first: bad, bad: bad, last: bad, newest: bad, end: -1, magnitude: math.NaN(), interval: none, p: math.NaN(), sure: true,
	}
}

// change sets the levels of an episode.
func (e *episode) change(before, after float64) {
	e.before, e.after, e.up = bounded(before), bounded(after), after > before
	if e.magnitude = math.NaN(); before != 0 {
		e.magnitude = bounded(e.after/e.before - 1)
	}
}

// A phase is what a row is for a condition.
type phase int

const (
	neither phase = iota // it cannot be told
	good
	bad
)

// scan is what a series of phases says: where the condition began to hold, and where it ended.
type scan struct {
	begin, newest, end int // rows; end is -1 while it holds
}

// scans finds where the condition holds, from a row up to another: it begins with as many
// consecutive bad rows as begin says, and ends with as many consecutive good ones as end says.
func scans(from, to, begin, end int, of func(i int) phase) []scan {
	var all []scan
	holds, bads, goods := false, 0, 0
	for i := from; i < to; i++ {
		switch of(i) {
		case bad:
			bads, goods = bads+1, 0
		case good:
			bads, goods = 0, goods+1
		case neither:
			bads, goods = 0, 0
		}
		switch {
		case !holds && bads >= begin:
			holds = true
			all = append(all, scan{begin: i - begin + 1, newest: i, end: -1})
		case holds && bads > 0:
			all[len(all)-1].newest = i
		case holds && goods >= end:
			holds, all[len(all)-1].end = false, i
		}
	}
	return all
}
