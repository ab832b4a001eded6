package extract

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Bounds of what is kept of lines.
const (
	maxBlock = 64 << 10 // bytes of a block
	maxRules = 32       // different kinds of blocks
)

// Limits of a block where its metric does not say them.
const (
	blockLines = 1000
	blockTime  = time.Minute
)

// rule says which lines are one block, and what is looked for in it.
type rule struct {
	pod.Block

	begin    *regexp.Regexp
	literal  needle
	patterns []pattern
}

// newRule returns a rule that looks for nothing yet.
func newRule(r pod.Block) (*rule, error) {
	if r.Begin == "" {
		return nil, errors.New("there is no pattern")
	}
	begin, err := regexp.Compile(r.Begin)
	if err != nil {
		return nil, err
	}
	if r.Lines <= 0 {
		r.Lines = blockLines
	}
	if r.Within <= 0 {
		r.Within = blockTime
	}
	return &rule{Block: r, begin: begin, literal: newNeedle(required(r.Begin))}, nil
}

// add has a metric looked for in the blocks that it speaks of.
func (p *Patterns) add(r pod.Block, c pattern) error {
	made, err := newRule(r)
	if err != nil {
		return err
	}
	for _, old := range p.blocks {
		if old.Block == made.Block {
			old.patterns = append(old.patterns, c)
			return nil
		}
	}
	if len(p.blocks) == maxRules {
		return fmt.Errorf("there are more than %d kinds of blocks", maxRules)
	}
	made.patterns = []pattern{c}
	p.blocks = append(p.blocks, made)
	return nil
}

// Piece is a line of a stream.
type Piece struct {
	Text string
	Cut  bool  // Text ends early
	Seq  int64 // its sequence number
	Time int64 // ns since 1970, when it was written
	From int64 // where to read from to meet it again
}

// bare is the line without the carriage return of its end.
func (p Piece) bare() Piece {
	if !p.Cut {
		p.Text = strings.TrimSuffix(p.Text, "\r")
	}
	return p
}

// cuts are the offsets of the text at which it is cut.
func (p Piece) cuts() []int {
	if !p.Cut {
		return nil
	}
	return []int{len(p.Text)}
}

// Blocks joins lines of one stream into blocks, and finds samples in them. A
// block begins at a line that its metric's pattern matches, and ends
//
//   - before the line at which the next begins,
//   - before a line that would make it larger than 64 KiB,
//   - before a line that was written more than a time after the one before it,
//   - with the last of so many lines,
//   - where no line follows in that time: see Due.
//
// Lines between the end of a block and the beginning of the next are in none.
// The samples of a block have the sequence number that follows that of its last
// line and the time of that line, whatever ended it: whoever reads the stream
// again finds them again, under the same numbers. It is of one goroutine.
type Blocks struct{ open []open }

// open is a block that is under way.
type open struct {
	*rule

	text  []byte
	cuts  []int // offsets of text at which lines are cut
	lines int   // 0 while there is no block
	from  int64
	last  Piece
}

// Blocks returns what joins the lines of one stream.
func (p *Patterns) Blocks() *Blocks {
	r := &Blocks{}
	for _, rule := range p.blocks {
		r.open = append(r.open, open{rule: rule})
	}
	return r
}

// Append takes the next line of the stream, and appends the samples of the
// blocks that it ends to dst. It returns what is none.
func (r *Blocks) Append(dst []event.Sample, line Piece) (samples []event.Sample, missed Missed) {
	line = line.bare()
	text := folded{text: line.Text}
	for i := range r.open {
		o := &r.open[i]
		begins := o.literal.in(&text) && o.begin.MatchString(line.Text)
		if o.lines > 0 && (begins || o.late(line.Time) || len(o.text)+1+len(line.Text) > maxBlock) {
			dst = o.end(dst, &missed)
		}
		if !begins && o.lines == 0 {
			continue
		}
		if o.take(line); o.lines >= o.Lines {
			dst = o.end(dst, &missed)
		}
	}
	return dst, missed
}

// take adds a line to the block, or begins one with it.
func (o *open) take(line Piece) {
	if o.lines == 0 {
		o.from = line.From
	} else {
		o.text = append(o.text, '\n')
	}
	o.text, o.lines = append(o.text, line.Text...), o.lines+1
	if line.Cut {
		o.cuts = append(o.cuts, len(o.text))
	}
	o.last = Piece{Seq: line.Seq, Time: line.Time}
}

// Due ends the blocks that no line has followed for their time, now being ns
// since 1970. It may be called when all that was written by then is appended.
func (r *Blocks) Due(dst []event.Sample, now int64) (samples []event.Sample, missed Missed) {
	return r.endWhere(dst, func(o *open) bool { return o.late(now) })
}

// End ends all blocks.
func (r *Blocks) End(dst []event.Sample) (samples []event.Sample, missed Missed) {
	return r.endWhere(dst, func(*open) bool { return true })
}

func (r *Blocks) endWhere(dst []event.Sample, over func(*open) bool) (samples []event.Sample, missed Missed) {
	for i := range r.open {
		if o := &r.open[i]; o.lines > 0 && over(o) {
			dst = o.end(dst, &missed)
		}
	}
	return dst, missed
}

// Under returns where to read from to meet all blocks again that are under way,
// at most offset.
func (r *Blocks) Under(offset int64) int64 {
	for i := range r.open {
		if o := &r.open[i]; o.lines > 0 {
			offset = min(offset, o.from)
		}
	}
	return offset
}

// Clear forgets the blocks that are under way.
func (r *Blocks) Clear() {
	for i := range r.open {
		r.open[i].clear()
	}
}

func (o *open) clear() { o.text, o.cuts, o.lines = o.text[:0], o.cuts[:0], 0 }

// late reports whether a line that is written at a time is too late for the
// block.
func (o *open) late(at int64) bool { return at-o.last.Time > int64(o.Within) }

// end ends the block and appends its samples.
func (o *open) end(dst []event.Sample, missed *Missed) []event.Sample {
	text, begin := string(o.text), len(dst)
	low := folded{text: text}
	for i := range o.patterns {
		if o.patterns[i].literal.in(&low) {
			dst = o.patterns[i].matches(dst, begin, text, o.cuts, missed)
		}
	}
	o.clear()
	for i := begin; i < len(dst); i++ {
		if dst[i].Seq = o.last.Seq + 1; dst[i].Time == 0 {
			dst[i].Time = o.last.Time
		}
	}
	return dst
}
