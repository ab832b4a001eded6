package changepoint

import (
	"fmt"
	"math"
	"slices"
)

// A window of windowRows rows with a value is analysed at a time; the next one begins
// windowStep rows later. What lies nearer than windowEdge to an end that has a neighbour
// is the neighbour's.
const (
	windowRows = 500
	windowStep = 250
	windowEdge = (windowRows - windowStep) / 2
)

// Analyse finds the changes of a series, in order of time. Values that are NaN or
// infinite are rows without a result.
func (d Detector) Analyse(values []float64) Analysis {
	s := accumulator{detector: d}
	for _, v := range values {
		s.add(v)
	}
	return s.analysis()
}

// accumulator is a series that grows.
type accumulator struct {
	detector Detector
	rows     int       // all rows so far
	values   []float64 // those with a value
	at       []int     // their rows

	begin   int // of the first window that is not complete, in values
	settled []found
}

// found is a change, with what the notes are made of.
type found struct {
	Change
	index int // in values
}

// add adds a row.
func (s *accumulator) add(v float64) {
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		s.values, s.at = append(s.values, v), append(s.at, s.rows)
	}
	s.rows++
	for len(s.values)-s.begin > windowRows {
		all, _ := s.window(s.begin, s.begin+windowRows)
		s.settled = joined(s.settled, all, s.begin+windowRows-windowEdge)
		s.begin += windowStep
	}
}

// window analyses the values from an index up to another, and leaves out what is the
// window's before.
func (s *accumulator) window(from, to int) ([]found, []string) {
	all, notes := s.detector.find(s.values[from:to])
	for i := range all {
		f := &all[i]
		f.index += from
		f.Index, f.First, f.Last = s.at[f.Index+from], s.at[f.First+from], s.at[f.Last+from]
	}
	if from > 0 {
		all = slices.DeleteFunc(all, func(f found) bool { return f.index < from+windowEdge })
	}
	return all, notes
}

// joined adds the changes of the next window that lie before an index. One that both
// windows found, on either side of their border, is one.
func joined(settled, next []found, before int) []found {
	for _, f := range next {
		if f.index < before && (len(settled) == 0 || f.index-settled[len(settled)-1].index >= MinSide) {
			settled = append(settled, f)
		}
	}
	return settled
}

// analysis is what the series says now.
func (s *accumulator) analysis() Analysis {
	a := Analysis{Points: len(s.values), Missing: s.rows - len(s.values)}
	if len(s.values) < MinPoints {
		a.Notes = []string{fmt.Sprintf("%d rows have a value: at least %d are needed to say that something changed", len(s.values),
			MinPoints)}
		return a
	}
	last, notes := s.window(s.begin, len(s.values))
	for _, f := range joined(slices.Clip(s.settled), last, len(s.values)) {
		a.Changes = append(a.Changes, f.Change)
	}
	a.Notes = notes
	return a
}

// find finds the changes of at least MinPoints finite values. Rows are indices of values.
func (d Detector) find(values []float64) (all []found, notes []string) {
	clean, wide, spikes := withoutSpikes(values)
	z, center, scale := standard(clean)
	if scale == 0 {
		return nil, []string{"all values are equal, but for spikes"}
	}
	starts, trend := trending(z)
	flat, ranked := z, values
	if trend != nil {
		flat = minus(z, trend)
		ranked = flat
	}
	byRank := model{z: scores(ranked)} // a short segment costs no more: few rows have few ranks, however clear they are
	starts, _ = byRank.eliminate(starts, rankPenalty)
	e := estimator{
		model: newModel(flat), wide: scaled(wide, center, scale, trend), starts: starts,
		trend: trend, center: center, scale: scale, confidence: d.confidence,
	}
	e.keepClear()
	return e.changes(), e.notes(spikes)
}

// scaled returns values around a center in a scale, without a trend.
func scaled(values []float64, center, scale float64, trend []float64) []float64 {
	z := make([]float64, len(values))
	for i, v := range values {
		z[i] = (v/2 - center/2) / (scale / 2)
	}
	if trend == nil {
		return z
	}
	return minus(z, trend)
}
