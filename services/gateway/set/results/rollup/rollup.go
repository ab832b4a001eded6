// Package rollup is the format in which a set stores the results of cells that do not change
// any more. It is pure.
//
// The cells of a block are bytes, in the encoding of encoding/binary. Each cell is:
//
//	index    difference from the index of the cell before it, as uvarint; that of the first is the index itself
//	whole    0 or 1, one byte
//	counts   of repetitions: succeeded, unsummarised, incomplete and skipped, as uvarints
//	series   their number, as uvarint; then for each its number in Block.Series and the number of points, as uvarints,
//	         and for each point the number of the repetition, as varint, and its value, a float64 of 8 bytes, little-endian
//
// JSON would take most of the time in which a pivot table of 10,000 cells is read.
package rollup

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/gateway/series"
)

const formatVersion = 1

// ErrDamaged means that a block cannot be decoded: it was written by a later version, or it
// is damaged.
var ErrDamaged = errors.New("the stored results of a set are damaged")

// CellResults are the results of one cell. Points have an index, the number of the repetition, and a
// value, and nothing else.
type CellResults struct {
	Index        int  // place in the sweep, from 0
	Whole        bool // all runs of the cell were made: no more can come
	Succeeded    int
	Unsummarised int
	Incomplete   int
	Skipped      int
	Series       []series.Series
}

// Block is the results of some cells, as JSON. Its zero value has none.
type Block struct {
	Format int         `json:"format,omitempty"`
	Series []SeriesKey `json:"series,omitempty"` // each once
	Cells  []byte      `json:"cells,omitempty"`
}

// SeriesKey is a series without its points.
type SeriesKey struct {
	Metric    string            `json:"metric"`
	Unit      string            `json:"unit,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Direction judge.Direction   `json:"direction,omitempty"`
}

// Encode returns the block of cells, which are in the order of their indices.
func Encode(cells []CellResults) Block {
	if len(cells) == 0 {
		return Block{}
	}
	b, numbers, before := Block{Format: formatVersion}, make(map[string]int), 0
	for _, c := range cells {
		b.Cells = binary.AppendUvarint(b.Cells, uint64(c.Index-before)) //nolint:gosec // in order
		before = c.Index
		whole := byte(0)
		if c.Whole {
			whole = 1
		}
		b.Cells = append(b.Cells, whole)
		for _, n := range []int{c.Succeeded, c.Unsummarised, c.Incomplete, c.Skipped, len(c.Series)} {
			b.Cells = binary.AppendUvarint(b.Cells, uint64(n)) //nolint:gosec // a number of things
		}
		for i := range c.Series {
			b.addSeries(&c.Series[i], numbers)
		}
	}
	return b
}

// addSeries adds a series of a cell; numbers are those of the series of the block, by key.
func (b *Block) addSeries(s *series.Series, numbers map[string]int) {
	k := SeriesKey{Metric: s.Metric, Unit: s.Unit, Labels: s.Labels, Direction: s.Direction}
	text, _ := json.Marshal(k) // keys of maps are sorted; texts have no errors
	n, ok := numbers[string(text)]
	if !ok {
		n = len(b.Series)
		numbers[string(text)], b.Series = n, append(b.Series, k)
	}
	b.Cells = binary.AppendUvarint(b.Cells, uint64(n)) //nolint:gosec // a length
	b.Cells = binary.AppendUvarint(b.Cells, uint64(len(s.Points)))
	for _, p := range s.Points {
		b.Cells = binary.AppendVarint(b.Cells, int64(p.Index))
		b.Cells = binary.LittleEndian.AppendUint64(b.Cells, math.Float64bits(p.Value))
	}
}

// Decode returns the cells of the block, in the order of their indices. The error is
// ErrDamaged. Cells share the labels of their series, which must not be changed.
func (b Block) Decode() ([]CellResults, error) {
	switch b.Format {
	case 0:
		return nil, nil
	case formatVersion:
	default:
		return nil, ErrDamaged
	}
	d := decoder{keys: b.Series, left: b.Cells, points: make([]series.Point, 0, len(b.Cells)/minPointSize)}
	var cells []CellResults
	for index := 0; len(d.left) > 0 && !d.damaged; {
		c := d.cell()
		c.Index += index
		if index = c.Index; index < 0 || len(cells) > 0 && index <= cells[len(cells)-1].Index {
			d.damaged = true
		}
		cells = append(cells, c)
	}
	if d.damaged {
		return nil, ErrDamaged
	}
	return cells, nil
}

// Sizes of what is encoded, at least, in bytes: no number of things is larger than the bytes
// that are left allow.
const (
	minSeriesSize = 2
	minPointSize  = 1 + 8
)

// decoder reads the bytes of cells. Once they are damaged, it reads zeros.
type decoder struct {
	keys    []SeriesKey
	left    []byte
	points  []series.Point // of all cells: one allocation for all
	damaged bool
}

func (d *decoder) cell() CellResults {
	c := CellResults{Index: d.number(math.MaxInt32), Whole: d.flag()}
	for _, n := range []*int{&c.Succeeded, &c.Unsummarised, &c.Incomplete, &c.Skipped} {
		*n = d.number(math.MaxInt32)
	}
	if n := d.number(len(d.left) / minSeriesSize); n > 0 {
		c.Series = make([]series.Series, n)
	}
	for i := range c.Series {
		k := d.key()
		c.Series[i] = series.Series{Metric: k.Metric, Unit: k.Unit, Labels: k.Labels, Direction: k.Direction, Points: d.seriesPoints()}
	}
	return c
}

func (d *decoder) key() SeriesKey {
	n := d.number(len(d.keys) - 1)
	if d.damaged {
		return SeriesKey{}
	}
	return d.keys[n]
}

func (d *decoder) seriesPoints() []series.Point {
	begin := len(d.points)
	for range d.number(len(d.left) / minPointSize) {
		d.points = append(d.points, series.Point{Index: d.signed(), Value: d.float()})
	}
	return d.points[begin:len(d.points):len(d.points)]
}

// number reads a number from 0 to a maximum.
func (d *decoder) number(most int) int {
	v, n := binary.Uvarint(d.left)
	if n <= 0 || most < 0 || v > uint64(most) {
		d.damaged, d.left = true, nil
		return 0
	}
	d.left = d.left[n:]
	return int(v) //nolint:gosec // at most a positive int
}

func (d *decoder) signed() int {
	v, n := binary.Varint(d.left)
	if n <= 0 {
		d.damaged, d.left = true, nil
		return 0
	}
	d.left = d.left[n:]
	return int(v)
}

func (d *decoder) flag() bool { return d.number(1) == 1 }

func (d *decoder) float() float64 {
	if len(d.left) < 8 {
		d.damaged, d.left = true, nil
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(d.left))
	d.left = d.left[8:]
	return v
}
