package results

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/set/results/rollup"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const (
	blockRuns    = 500     // runs of the cells whose results are stored in one document
	maxBlockSize = 4 << 20 // bytes of these; the results of a larger block are read from its runs

	// MissingTime is the time after the end of a set after which a run of it that no list of the store shows does not exist.
	MissingTime = 10 * time.Minute
)

// block is consecutive cells of a set: those from first on, before end. Their results are
// stored in one document.
type block struct{ first, end int }

// BlockSize returns the number of cells whose results are stored in one document: block n has
// the cells from n*BlockSize on.
func (s SetState) BlockSize() int { return s.cellsFor(s.Cells, blockRuns) }

// block returns the block with a number, from 0.
func (s SetState) block(n int) block {
	first := n * s.BlockSize()
	return block{first: first, end: min(first+s.BlockSize(), s.Cells)}
}

// blocks returns the blocks that cells from one on and before another are in, in order.
func (s SetState) blocks(begin, end int) (all []block) {
	for begin < end {
		b := s.block(begin / s.BlockSize())
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
	b.cells = slices.SortedFunc(slices.Values(slices.Concat(b.cells, cells)),
		func(x, y rollup.CellResults) int { return cmp.Compare(x.Index, y.Index) })
	b.oldest = older(b.oldest, oldest)
	return b
}

// current returns the cells whose stored results are those of a set as it is now; ended is the
// number of its runs that had ended before. A cell that lacked runs has got some if the set has
// gone on since.
func current(s SetState, cells []rollup.CellResults, ended int) []rollup.CellResults {
	if s.Finished && s.EndedRuns == ended {
		return cells
	}
	return slices.DeleteFunc(cells, func(c rollup.CellResults) bool { return !c.Whole })
}

// settled returns the results of a cell that was read, which has that many runs by the plan of
// its set, and reports whether they do not change any more:
//
//   - No run is to come: the cell has all, or the set finished MissingTime ago. If the set goes
//     on, the results are not current any more.
//   - Each run has ended, and is projected with its submission, since which it was queued.
//   - Each run that counts has a complete summary, or never has one: bare has the runs whose
//     samples were summarised, and of which there were none.
func settled(s SetState, c *cellReader, runs int, bare map[string]bool, now time.Time) (rollup.CellResults, bool) {
	results := c.results()
	results.Whole = c.made >= runs
	over := s.Finished && now.Sub(s.Ended) >= MissingTime
	return results, !c.goesOn && (results.Whole || over) &&
		!slices.ContainsFunc(c.counted, func(r store.Run) bool { return !c.summary[r.ID] && !bare[r.ID] })
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
