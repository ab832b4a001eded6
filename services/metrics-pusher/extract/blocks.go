package extract

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract/prefilter"
)

// Bounds of blocks.
const (
	maxBlock = 64 << 10 // bytes of a block
	maxRules = 32       // different kinds of blocks
)

// Limits of a block if its metric sets none.
const (
	blockLines = 1000
	blockTime  = time.Minute
)

// blockRule defines which lines make up a block, and which patterns are searched in it.
type blockRule struct {
	pod.Block

	begin    *regexp.Regexp
	filter   prefilter.Filter
	patterns []pattern
}

// newBlockRule returns a rule without patterns.
func newBlockRule(r pod.Block) (*blockRule, error) {
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
	return &blockRule{Block: r, begin: begin, filter: prefilter.New(r.Begin)}, nil
}

// add adds a pattern to the rule of its blocks.
func (p *Patterns) add(r pod.Block, c pattern) error {
	made, err := newBlockRule(r)
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

// Line is a line of a stream.
type Line struct {
	Text string
	Cut  bool  // Text ends early
	Seq  int64 // its sequence number
	Time int64 // ns since 1970, when the line was written
	From int64 // offset to read from to meet the line again
}

// trimCR removes the carriage return of the line's end.
func (p *Line) trimCR() {
	if !p.Cut {
		p.Text = strings.TrimSuffix(p.Text, "\r")
	}
}

// cuts returns the offset at which the text is cut off, if it is.
func (p *Line) cuts() []int {
	if !p.Cut {
		return nil
	}
	return []int{len(p.Text)}
}

// Blocks joins lines of one stream into blocks, and finds samples in them. A block begins at a line that its metric's pattern matches, and
// ends
//
//   - before the line at which the next begins,
//   - before a line that would make it larger than 64 KiB,
//   - before a line that was written more than Within after the line before it,
//   - with line number Lines of the block,
//   - if no line follows in Within: see Expire, and for a reader that meets the lines again RestoreClosed.
//
// Lines between the end of a block and the beginning of the next are in no block. The samples of a block have the sequence number after
// that of its last line and the time of that line, however the block ended: a second reader of the stream finds them under the same
// numbers. Only one goroutine may use it.
type Blocks struct{ open []openBlock }

// openBlock is a block that has not ended.
type openBlock struct {
	*blockRule

	text  []byte
	cuts  []int // offsets of text at which lines are cut
	lines int   // 0 while there is no block
	from  int64
	last  Line

	closedAt int64 // sequence number of the last line of the last block that Expire or End ended, below 0 if there is none
}

// Blocks returns a new joiner for the lines of one stream.
func (p *Patterns) Blocks() *Blocks {
	r := &Blocks{}
	for _, rule := range p.blocks {
		r.open = append(r.open, openBlock{blockRule: rule, closedAt: -1})
	}
	return r
}

// Append takes the next line of the stream, and appends the samples of the blocks that end with it to dst. It returns the matches that are
// no samples.
func (r *Blocks) Append(dst []event.Sample, line Line) (samples []event.Sample, missed Misses) {
	line.trimCR()
	text := prefilter.Text{Original: line.Text}
	for i := range r.open {
		o := &r.open[i]
		begins := o.filter.MayMatch(&text) && o.begin.MatchString(line.Text)
		if o.lines > 0 && (begins || o.expired(line.Time) || len(o.text)+1+len(line.Text) > maxBlock) {
			dst = o.end(dst, &missed)
		}
		if !begins && o.lines == 0 {
			continue
		}
		if o.take(line); o.lines >= o.Lines || line.Seq == o.closedAt {
			dst = o.end(dst, &missed)
		}
	}
	return dst, missed
}

// take adds a line to the block, or begins a block with it.
func (o *openBlock) take(line Line) {
	if o.lines == 0 {
		o.from = line.From
	} else {
		o.text = append(o.text, '\n')
	}
	o.text, o.lines = append(o.text, line.Text...), o.lines+1
	if line.Cut {
		o.cuts = append(o.cuts, len(o.text))
	}
	o.last = Line{Seq: line.Seq, Time: line.Time}
}

// Expire ends the blocks that no line has followed for their time, with now in ns since 1970. Call it only when all lines written until now
// are appended.
func (r *Blocks) Expire(dst []event.Sample, now int64) (samples []event.Sample, missed Misses) {
	return r.endWhere(dst, func(o *openBlock) bool { return o.expired(now) })
}

// Closed returns, for each kind of block, the sequence number of the line with which Expire or End ended a block last, below 0 if they
// ended none. The lines alone do not say this.
func (r *Blocks) Closed() []int64 {
	all := make([]int64, len(r.open))
	for i := range r.open {
		all[i] = r.open[i].closedAt
	}
	return all
}

// RestoreClosed takes the result of Closed of another Blocks for the same stream and metrics. A reader that meets the lines again then has
// the same blocks open behind them.
func (r *Blocks) RestoreClosed(all []int64) {
	for i := range min(len(all), len(r.open)) {
		r.open[i].closedAt = all[i]
	}
}

// End ends all blocks.
func (r *Blocks) End(dst []event.Sample) (samples []event.Sample, missed Misses) {
	return r.endWhere(dst, func(*openBlock) bool { return true })
}

func (r *Blocks) endWhere(dst []event.Sample, over func(*openBlock) bool) (samples []event.Sample, missed Misses) {
	for i := range r.open {
		if o := &r.open[i]; o.lines > 0 && over(o) {
			o.closedAt = o.last.Seq
			dst = o.end(dst, &missed)
		}
	}
	return dst, missed
}

// ResumeOffset returns where to read from to meet all blocks again that are under way,
// at most offset.
func (r *Blocks) ResumeOffset(offset int64) int64 {
	for i := range r.open {
		if o := &r.open[i]; o.lines > 0 {
			offset = min(offset, o.from)
		}
	}
	return offset
}

// Clear drops the open blocks.
func (r *Blocks) Clear() {
	for i := range r.open {
		r.open[i].clear()
	}
}

func (o *openBlock) clear() { o.text, o.cuts, o.lines = o.text[:0], o.cuts[:0], 0 }

// expired reports whether a line that is written at time at is too late for the block.
func (o *openBlock) expired(at int64) bool { return at-o.last.Time > int64(o.Within) }

// end ends the block and appends its samples.
func (o *openBlock) end(dst []event.Sample, missed *Misses) []event.Sample {
	text, begin := string(o.text), len(dst)
	low := prefilter.Text{Original: text}
	for i := range o.patterns {
		if o.patterns[i].filter.MayMatch(&low) {
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
