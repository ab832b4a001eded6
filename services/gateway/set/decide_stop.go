package set

import (
	"fmt"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/sweep"
	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/gateway/series"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// summaryTime is the time after the end of a run after which its cell goes on without its
// summary. It is longer than metrics-pusher waits for samples that do not come.
const summaryTime = 15 * time.Minute

// StopWhen is the table sweep.stop_when.
type StopWhen struct {
	Metric    string  `json:"metric"`
	HalfWidth float64 `json:"half_width"` // share of the median
	Min       int     `json:"min"`
	Max       int     `json:"max"`
}

func stopWhenOf(table descriptors.Sweep) *StopWhen {
	if table.StopWhen == nil {
		return nil
	}
	when := StopWhen(*table.StopWhen)
	return &when
}

// rule returns the rule to stop a cell.
func (w StopWhen) rule() (*judge.Stopping, error) {
	j, err := judge.New(judge.Settings{})
	if err != nil {
		return nil, err
	}
	return j.Stopping(judge.StopWhen{HalfWidth: w.HalfWidth, Min: w.Min, Max: w.Max})
}

// CellStops is how far the cells of a set with sweep.stop_when have come.
type CellStops struct {
	Open        []OpenCell `json:"open,omitempty"`
	Stopped     []byte     `json:"stopped,omitempty"`      // a bit for each cell that has enough repetitions, the lowest first
	Skipped     int        `json:"skipped,omitempty"`      // repetitions that are not made because their cells have enough
	StopMessage string     `json:"stop_message,omitempty"` // why a cell goes on to the last repetition; of the first such cell
}

// OpenCell is a cell with a repetition that waits for those before it.
type OpenCell struct {
	Cell int `json:"cell"`
	Next int `json:"next"` // the repetition
	Last int `json:"last"` // the last repetition whose turn has come in the order of the sweep
}

// isStopped reports whether a cell has enough repetitions.
func (c CellStops) isStopped(cell int) bool { return hasBit(c.Stopped, cell) }

// skips reports whether a run that was not made was skipped: its cell has enough.
func (s Set) skips(r sweep.Run) bool {
	return s.StopWhen != nil && !r.Warmup && r.Repetition > s.StopWhen.Min && s.isStopped(r.Cell)
}

// hasBit reports whether a bit is set.
func hasBit(bits []byte, n int) bool { return n/8 < len(bits) && bits[n/8]&(1<<(n%8)) != 0 }

// withBit returns a copy of bits in which one more is set.
func withBit(bits []byte, n int) []byte {
	all := make([]byte, max(len(bits), n/8+1))
	copy(all, bits)
	all[n/8] |= 1 << (n % 8)
	return all
}

// bitsOf returns the numbers of the bits that are set, in order; nil if there are none.
func bitsOf(bits []byte) (all []int) {
	for n := range 8 * len(bits) {
		if hasBit(bits, n) {
			all = append(all, n)
		}
	}
	return all
}

// cellDecision says whether an open cell has enough repetitions.
type cellDecision struct {
	Stop bool
	Note string // why the values decide nothing; empty if they do
}

// closeCells closes the open cells that have enough repetitions, and notes those whose next
// repetition is made.
func (d *decision) closeCells(seen observation) {
	d.ready = make(map[int]bool, len(seen.Cells))
	d.Open = slices.DeleteFunc(slices.Clone(d.Open), func(c OpenCell) bool {
		found, known := seen.Cells[c.Cell]
		if !known {
			return false
		}
		if found.Note != "" && d.StopMessage == "" {
			d.StopMessage, d.changed = clip(found.Note), true
		}
		if !found.Stop {
			d.ready[c.Cell] = true
			return false
		}
		d.Stopped = withBit(d.Stopped, c.Cell)
		d.Skipped, d.changed = d.Skipped+d.Repetitions-c.Next+1, true
		return true
	})
}

// nextOfOpen returns the ordinal of the next repetition of an open cell that waits no more,
// if there is one.
func (d *decision) nextOfOpen(plan *sweep.Plan) (ordinal int, found bool) {
	for i, c := range d.Open {
		if !d.ready[c.Cell] {
			continue
		}
		delete(d.ready, c.Cell)
		if d.Open[i].Next++; c.Next == c.Last {
			d.Open = slices.Delete(d.Open, i, i+1)
		}
		return plan.Ordinal(sweep.Run{Cell: c.Cell, Repetition: c.Next}), true
	}
	return 0, false
}

// skipWaiting goes on in the order of the sweep to the next run that does not wait, or to the
// end. It reports false if it has to wait on its way, because too many cells are open.
func (d *decision) skipWaiting(plan *sweep.Plan) bool {
	for d.Next < d.Runs {
		r := plan.Run(d.Next)
		if r.Warmup || r.Repetition <= d.StopWhen.Min {
			return true
		}
		if !d.isStopped(r.Cell) && !d.open(r) {
			return false
		}
		d.Next, d.changed = d.Next+1, true
	}
	return true
}

// open has a repetition wait for those before it, unless too many cells are open.
func (d *decision) open(r sweep.Run) bool {
	for i := range d.Open {
		if d.Open[i].Cell == r.Cell {
			d.Open[i].Last = r.Repetition
			return true
		}
	}
	if len(d.Open) >= d.Parallel() {
		return false
	}
	d.Open = append(d.Open, OpenCell{Cell: r.Cell, Next: r.Repetition, Last: r.Repetition})
	return true
}

// decideCell decides whether a cell has enough repetitions, by the values of all that were
// made. Those without a value are left out. The cell goes on where the values are not of one
// unit and one set of labels.
func decideCell(b *series.Builder, name string, when StopWhen, rule *judge.Stopping) cellDecision {
	all := b.Series()
	switch {
	case len(all) > 1:
		return cellDecision{Note: fmt.Sprintf("metric %q of stop_when has several units or labels in cell %s: its repetitions go on to %d",
			when.Metric, name, when.Max)}
	case len(all) == 0 && b.Runs > b.Unsummarised:
		return cellDecision{Note: fmt.Sprintf("metric %q of stop_when has no values in cell %s: its repetitions go on to %d",
			when.Metric, name, when.Max)}
	}
	var values []float64
	for _, one := range all {
		values = append(values, one.Values()...)
	}
	return cellDecision{Stop: rule.Decide(values).Reason != judge.GoOn}
}

// awaitsSummary reports whether the summary of a run that is not stored may still come. A
// run without samples has none.
func awaitsSummary(r store.Run, streams []store.Stream, now time.Time) bool {
	if r.Ended == nil || now.Sub(*r.Ended) >= summaryTime {
		return false
	}
	c := store.Complete(r, streams)
	return !c.Complete || c.Samples > 0
}
