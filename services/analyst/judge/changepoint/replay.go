package changepoint

import "slices"

// A Replay takes a series row by row and remembers what was said and taken back.
type Replay struct {
	series   accumulator
	all      []Detection
	analysis Analysis
	standing []int // indices in all
}

// A Detection is a change as a replay saw it.
type Detection struct {
	Change

	// Seen is the row with which the change was first said. Withdrawn is the row with
	// which it was taken back; -1 where it still stands.
	Seen      int
	Withdrawn int
}

// Replay returns a replay of an empty series.
func (d Detector) Replay() *Replay {
	r := &Replay{series: accumulator{detector: d}}
	r.analysis = r.series.analysis()
	return r
}

// Add adds a row: NaN where it has no value.
func (r *Replay) Add(value float64) {
	row, points := r.series.rows, len(r.series.values)
	r.series.add(value)
	if len(r.series.values) == points {
		r.analysis.Missing++
		return // nothing new is known
	}
	r.analysis = r.series.analysis()
	r.compare(row)
}

// compare finds again what was said before. A change that moves a few rows as results
// come, within the rows where it may lie, is the same one.
func (r *Replay) compare(row int) {
	before := r.standing
	r.standing = make([]int, 0, len(r.analysis.Changes))
	for _, c := range r.analysis.Changes {
		i := slices.IndexFunc(before, func(i int) bool { return same(r.all[i].Change, c) })
		if i < 0 {
			r.standing = append(r.standing, len(r.all))
			r.all = append(r.all, Detection{Change: c, Seen: row, Withdrawn: -1})
			continue
		}
		r.all[before[i]].Change = c
		r.standing = append(r.standing, before[i])
		before = slices.Concat(before[:i], before[i+1:])
	}
	for _, i := range before {
		r.all[i].Withdrawn = row
	}
}

// same reports whether two changes may be one.
func same(a, b Change) bool {
	return a.First <= b.Last && b.First <= a.Last || max(a.Index-b.Index, b.Index-a.Index) <= MinSide
}

// Detections returns all changes that were ever said, in order of Seen, and what is said
// of the whole series now. Those that are not withdrawn are exactly the changes of the
// analysis.
func (r *Replay) Detections() ([]Detection, Analysis) {
	return slices.Clone(r.all), r.analysis
}
