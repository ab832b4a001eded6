package set

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/set/rollup"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const (
	blockRuns    = 500     // runs of the cells whose results are stored in one document
	maxBlockSize = 4 << 20 // bytes of these; the results of a larger block are read from its runs

	// A run that no list of the store shows so long after the end of its set does not exist.
	missingTime = 10 * time.Minute

	// A set whose results cannot all be stored yet is looked at again after half of the time since its end.
	minRollupWait  = 5 * time.Second
	maxRollupWait  = 5 * time.Minute
	rollupTime     = 30 * time.Minute // after which it is looked at only if a request has read its runs
	idleRollupWait = 10 * time.Minute // between two of these looks
)

// block is consecutive cells of a set: those from first on, before end. Their results are
// stored in one document.
type block struct{ first, end int }

// blockOf returns the block of a set that a cell is in.
func blockOf(s Set, cell int) block {
	n := cellsFor(s, s.Cells, blockRuns)
	first := cell / n * n
	return block{first: first, end: min(first+n, s.Cells)}
}

// blocksOf returns the blocks that cells from one on and before another are in, in order.
func blocksOf(s Set, begin, end int) (all []block) {
	for begin < end {
		b := blockOf(s, begin)
		all, begin = append(all, b), b.end
	}
	return all
}

// key returns the key of the block's document.
func (b block) key(set string) string { return fmt.Sprintf("%s!%d-%d", set, b.first, b.end) }

// runRef is a run and the time of its submission.
type runRef struct {
	Run     string    `json:"run"`
	Created time.Time `json:"created"`
}

// older returns the older one of two runs; nil is no run.
func older(a, b *runRef) *runRef {
	if a == nil || b != nil && b.Created.Before(a.Created) {
		return b
	}
	return a
}

// blockDoc is the document of KindSetRollup: the results of cells of a block.
type blockDoc struct {
	rollup.Block

	Ended  int     `json:"ended"`            // runs of the set that had ended
	Oldest *runRef `json:"oldest,omitempty"` // of the cells; the document has no meaning without it
}

// storedBlock is a block whose document was read.
type storedBlock struct {
	block

	version int64 // of the document; 0: there is none
	cells   []rollup.CellResults
	oldest  *runRef // of the cells
}

// whole reports whether the results of all cells are stored.
func (b storedBlock) whole() bool { return len(b.cells) == b.end-b.first }

// missing returns the cells whose results are not stored, in order.
func (b storedBlock) missing() (cells []int) {
	stored := b.cells
	for cell := b.first; cell < b.end; cell++ {
		if len(stored) > 0 && stored[0].Index == cell {
			stored = stored[1:]
			continue
		}
		cells = append(cells, cell)
	}
	return cells
}

// with returns the block with more cells, of which it has none.
func (b storedBlock) with(cells []rollup.CellResults, oldest *runRef) storedBlock {
	b.cells = slices.SortedFunc(slices.Values(slices.Concat(b.cells, cells)), func(x, y rollup.CellResults) int { return cmp.Compare(x.Index, y.Index) })
	b.oldest = older(b.oldest, oldest)
	return b
}

// ended returns the number of runs of a set that have ended or were refused.
func (s Set) ended() int { return s.Counts.Succeeded + s.Counts.Failed + s.Counts.Canceled }

// current returns the cells whose stored results are those of a set as it is now; ended is the
// number of its runs that had ended before. A cell that lacked runs has got some if the set has
// gone on since.
func current(s Set, cells []rollup.CellResults, ended int) []rollup.CellResults {
	if s.State == StateFinished && s.ended() == ended {
		return cells
	}
	return slices.DeleteFunc(cells, func(c rollup.CellResults) bool { return !c.Whole })
}

// settled returns the results of a cell that was read, which has that many runs by the plan of
// its set, and reports whether they do not change any more:
//
//   - No run is to come: the cell has all, or the set finished missingTime ago. If the set goes
//     on, the results are not current any more.
//   - Each run has ended, and is projected with its submission, since which it was queued.
//   - Each run that counts has a complete summary, or never has one: bare has the runs whose
//     samples were summarised, and of which there were none.
func settled(s Set, c *cellReader, runs int, bare map[string]bool, now time.Time) (rollup.CellResults, bool) {
	results := c.results()
	results.Whole = c.made >= runs
	over := s.State == StateFinished && now.Sub(s.Ended) >= missingTime
	return results, !c.goesOn && (results.Whole || over) && !slices.ContainsFunc(c.counted, func(r store.Run) bool { return !c.summary[r.ID] && !bare[r.ID] })
}

// withoutSummary returns the IDs of the runs that count and have no summary.
func (c *cellReader) withoutSummary() (ids []string) {
	for _, r := range c.counted {
		if _, found := c.summary[r.ID]; !found {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// lastOrdinals returns the ordinal of the last run of each block of a set.
func lastOrdinals(s Set, l loaded) []int {
	all, size := make([]int, len(blocksOf(s, 0, s.Cells))), blockOf(s, 0).end
	for ordinal := range l.runs() {
		all[l.run(ordinal).Cell/size] = ordinal
	}
	return all
}

// madeBlocks reports for each block of a set whether all its runs were made and have ended, as
// far as the set knows.
func madeBlocks(s Set, l loaded, last []int) []bool {
	made, size := make([]bool, len(last)), blockOf(s, 0).end
	for i := range made {
		made[i] = s.State == StateFinished || last[i] < s.Next
	}
	for _, a := range s.Active {
		made[l.run(a.Ordinal).Cell/size] = false
	}
	for _, c := range s.Open {
		made[c.Cell/size] = false
	}
	return made
}

// rollupWait returns the time after which a set whose results are not all stored is looked at
// again, and whether that is in any case. The Runner adds a set that goes on whenever it
// changes.
func rollupWait(s Set, now time.Time) (wait time.Duration, again bool) {
	since := now.Sub(s.Ended)
	switch {
	case s.State != StateFinished:
		return minRollupWait, false
	case since >= rollupTime:
		return idleRollupWait, false
	}
	return min(max(since/2, minRollupWait), maxRollupWait), true
}
