package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// Times of a reading.
const (
	batchDelay   = 200 * time.Millisecond // how long a line waits for other lines of its batch
	saveInterval = time.Second            // how often the progress is stored
)

// logReader reads one log and ships it.
type logReader struct {
	deps     Deps
	header   event.Header
	patterns *extract.Patterns
	blocks   *extract.Blocks       // the end of the log ends a block, a broken connection does not
	series   extract.SeriesLimiter // series whose samples are shipped; another follower starts to count anew
	limit    int64                 // bytes that are stored; 0 is no limit
	tail     tailBuffer            // end of a log over the limit

	version   int64
	savedAt   time.Time
	dirty     bool
	committed progress // everything up to here is shipped
	pending   progress // like committed, once the open batch is published

	lines   []event.Line // under way, as are these
	samples []event.Sample
	size    int
}

// newLogReader returns a logReader that continues from p.
func (f *follower) newLogReader(ctx context.Context, t *followedLog, p progress, version int64) (*logReader, error) {
	run, err := f.deps.Store.Run(ctx, p.Ref.Run)
	if err != nil {
		return nil, fmt.Errorf("look what run %s is: %w", p.Ref.Run, err)
	}
	d, faults := parser.Parser{Accepted: true}.Parse(run.File, []byte(run.Descriptor))
	h := event.NewHeader(event.Derive("follow", p.UID), run.ID, run.Namespace, run.Owner, p.Created)
	h.Attempt, h.Lineage = max(1, p.Ref.Attempt), run.Lineage
	if d == nil {
		if err := f.deferLog(ctx, t, h, run.Descriptor, faults); err != nil {
			return nil, err
		}
		d = &descriptors.Descriptor{Limits: parser.LimitsOf([]byte(run.Descriptor))}
		p.Samples.drop(0, noPatterns)
	}
	metrics, limit := metricsOf(d, p.Role, f.settings.MaxLog)
	patterns, err := extract.Compile(metrics)
	if err != nil {
		return nil, err
	}
	blocks := patterns.Blocks()
	blocks.RestoreClosed(p.Closed)
	return &logReader{
		deps: f.deps, header: h, patterns: patterns, blocks: blocks,
		series: extract.SeriesLimiter{Max: seriesOf(d, p.Role)}, limit: limit, tail: tailBuffer{maxBytes: extract.TailOf(limit, maxTail)},
		version: version, committed: p, pending: p, savedAt: f.deps.Clock(),
	}, nil
}

// rawLine is a line as it was read, or the error that ended the log.
type rawLine struct {
	text   []byte
	length int
	open   bool
	err    error
}

// pass reads the log from the last shipped line on, until the log or the connection ends. A line without an end is shipped in the last pass
// only.
func (r *logReader) pass(ctx context.Context, last bool) error {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := r.deps.Cluster.Log(ctx, cluster.Log{
		Scope: r.committed.Ref.Scope, Pod: r.committed.Pod, Container: cluster.ContainerBenchmark, Since: r.committed.since(),
	})
	if err != nil {
		cancel()
		return err
	}
	pieces := make(chan rawLine)
	go readLines(ctx, stream, pieces)
	defer func() {
		cancel()
		_ = stream.Close() // it was only read
		for range pieces { // until the reader has ended
		}
	}()
	return r.take(ctx, pieces, last)
}

// readLines sends lines to pieces until the log ends or ctx is done.
func readLines(ctx context.Context, stream io.Reader, pieces chan<- rawLine) {
	defer close(pieces)
	for l := newLines(stream); ; {
		text, length, open, err := l.next(maxLine + len(time.RFC3339Nano) + 1)
		select {
		case pieces <- rawLine{text, length, open, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// take ships lines as they come, in batches.
func (r *logReader) take(ctx context.Context, pieces <-chan rawLine, last bool) error {
	var before int64 // the number of the line before
	due := time.NewTicker(batchDelay)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-due.C:
			if err := errors.Join(r.flush(ctx), r.saveDue(ctx)); err != nil {
				return err
			}
		case p, ok := <-pieces:
			switch {
			case !ok:
				return ctx.Err()
			case errors.Is(p.err, io.EOF):
				samples, missed := r.blocks.End(r.samples)
				r.addSamples(samples, missed, event.Line{Seq: r.pending.Seq})
				return r.flush(ctx)
			case p.err != nil:
				return errors.Join(r.flush(ctx), fmt.Errorf("read the log of pod %s: %w", r.committed.Pod, p.err))
			case p.open && !last:
				continue
			}
			var err error
			if before, err = r.add(ctx, p, before); err != nil {
				return err
			}
		}
	}
}

// add takes a line, and returns its number.
func (r *logReader) add(ctx context.Context, p rawLine, before int64) (int64, error) {
	at, text, ok := cutTimestamp(p.text)
	if !ok {
		r.pending.Lines.drop(0, "the cluster says of its log: "+string(p.text[:min(len(p.text), 200)]))
		return before, nil
	}
	seq := nextSeq(r.committed.Created, at, before)
	length := int64(p.length - (len(p.text) - len(text)))
	l := lineOf(text, length, seq, at, p.open)
	if seq <= r.pending.Seq { // it is shipped, or in the end of a log over its limit
		_, _ = r.blocks.Append(nil, pieceOf(l)) // which had these samples too
		if c := r.pending.Cut; len(c.Marks) > 0 && seq > c.Marks[0].After {
			r.tail.add(l)
		}
		return seq, nil
	}
	if r.size+len(l.Text) > maxBatch || len(r.samples) > maxSamples {
		if err := r.flush(ctx); err != nil {
			return before, err
		}
	}
	r.addLine(l)
	r.pending.Seq, r.pending.Time = seq, at
	return seq, nil
}

// pieceOf returns a line in the form that is searched.
func pieceOf(l event.Line) extract.Line {
	return extract.Line{Text: l.Text, Cut: l.Truncated, Seq: l.Seq, Time: l.Time, From: l.Time}
}

// addLine ships a line and its samples. A line behind the stored beginning of the log goes to the tail instead.
func (r *logReader) addLine(l event.Line) {
	first, piece := len(r.samples), pieceOf(l)
	samples, missed := r.blocks.Append(r.samples, piece)
	r.addSamples(samples, missed, l)
	samples, missed = r.patterns.Append(r.samples, piece)
	r.addSamples(samples, missed, l)
	r.size += 100 * (1 + len(r.samples) - first)
	if c := r.pending.Cut; r.limit > 0 && (c.Lines > 0 || r.pending.HeadBytes+sizeOf(l) > r.limit-r.tail.maxBytes) {
		r.pending.Cut = c.Add(l.Seq, extract.Mark{From: l.Time, After: l.Seq - 1, Bytes: c.Bytes}, sizeOf(l), r.tail.maxBytes)
		r.tail.add(l)
		return
	}
	r.pending.HeadBytes += sizeOf(l)
	r.ship(l)
}

func (r *logReader) ship(l event.Line) { r.lines, r.size = append(r.lines, l), r.size+len(l.Text) }

// shipTail ships the end of a log that is over its limit, and counts the lines between the beginning and that end as dropped.
func (r *logReader) shipTail(ctx context.Context) error {
	c := r.pending.Cut
	if c.Lines == 0 {
		return nil
	}
	for _, l := range r.tail.lines {
		if r.size+len(l.Text) > maxBatch {
			if err := r.flush(ctx); err != nil {
				return err
			}
		}
		r.ship(l)
	}
	if err := r.flush(ctx); err != nil {
		return err
	}
	if n := c.Lines - int64(len(r.tail.lines)); n > 0 {
		r.pending.Lines.drop(n, extract.LogLimitReason(r.limit, c.Bytes-r.tail.bytes))
	}
	return nil
}

// addSamples adds the samples behind r.samples to the open batch, as far as their series are stored. A sample without a number or time gets
// that of l, the line at which it was found.
func (r *logReader) addSamples(samples []event.Sample, missed extract.Misses, l event.Line) {
	missed.Report(l.Seq, maxLine, r.pending.Samples.drop)
	r.pending.Untimed += int64(missed.Times)
	for i := len(r.samples); i < len(samples); i++ {
		s := samples[i]
		if !r.series.Admit(&s) {
			r.pending.Samples.drop(1, r.series.TooMany())
			continue
		}
		s.Seq, s.Time = cmp.Or(s.Seq, l.Seq), cmp.Or(s.Time, l.Time)
		r.samples = append(r.samples, s)
	}
}

// flush publishes the open batch.
func (r *logReader) flush(ctx context.Context) error {
	var evs []event.Event
	if n := len(r.lines); n > 0 {
		evs = append(evs, event.Logs{
			Header: r.eventHeader("logs", fmt.Sprintf("%d-%d", r.lines[0].Seq, r.lines[n-1].Seq)),
			Stream: r.committed.source(), Lines: r.lines,
		})
		r.pending.Lines.ship(n, r.lines[n-1].Seq)
	}
	if n := len(r.samples); n > 0 {
		first, last := r.samples[0], r.samples[n-1]
		subject := fmt.Sprintf("%d.%d-%d.%d", first.Seq, first.Sub, last.Seq, last.Sub)
		evs = append(evs, event.Metrics{Header: r.eventHeader("metrics", subject), Stream: r.committed.source(), Samples: r.samples})
		r.pending.Samples.ship(n, last.Seq)
	}
	if len(evs) > 0 {
		if err := r.deps.Bus.Publish(ctx, evs...); err != nil {
			r.rollback()
			return fmt.Errorf("ship the log of pod %s: %w", r.committed.Pod, err)
		}
		r.lines, r.samples, r.size = nil, nil, 0 // the bus may keep the slices
	}
	r.dirty = r.dirty || len(evs) > 0 || r.committed.Seq != r.pending.Seq
	r.pending.noteBlocks(r.blocks)
	r.committed = r.pending
	return nil
}

// rollback drops the lines and samples that were not published: they are read again.
func (r *logReader) rollback() { r.pending, r.lines, r.samples, r.size = r.committed, nil, nil, 0 }

// eventHeader returns the header of an event about the log.
func (r *logReader) eventHeader(kind, subject string) event.Header {
	return r.header.Cause(kind, r.committed.source().ID(r.header.Run, r.header.Attempt)+" "+subject)
}

func (r *logReader) saveDue(ctx context.Context) error {
	if r.deps.Clock().Sub(r.savedAt) < saveInterval {
		return nil
	}
	return r.save(ctx)
}

// save stores the progress of the log. It fails if another follower has stored the progress since.
func (r *logReader) save(ctx context.Context) error {
	r.savedAt = r.deps.Clock()
	if !r.dirty {
		return nil
	}
	version, err := store.Replace(ctx, r.deps.Store, store.KindLogProgress, openPrefix+r.committed.UID, r.version, r.committed)
	if err != nil {
		return fmt.Errorf("write how far the log of pod %s is shipped: %w", r.committed.Pod, err)
	}
	r.version, r.dirty = version, false
	return nil
}

// finish publishes the ends of the log, and stores that it is shipped.
func (r *logReader) finish(ctx context.Context) error {
	var events []event.Event
	if n := r.pending.Untimed; n > 0 {
		of := fmt.Sprintf("%s of %s-%d", event.StreamLog, r.committed.Role, r.committed.Index)
		events = append(events, event.Status{
			Header: r.eventHeader("status", "times"), Phase: event.PhaseRunning,
			Message: extract.UntimedNotice(n, of),
		})
	}
	if err := r.deps.Bus.Publish(ctx, append(events,
		event.Metrics{
			Header: r.eventHeader("metrics", "end"), Stream: r.committed.source(), Samples: []event.Sample{},
			End: r.pending.Samples.end(),
		},
		event.Logs{Header: r.eventHeader("logs", "end"), Stream: r.committed.source(), Lines: []event.Line{}, End: r.pending.Lines.end()},
	)...); err != nil {
		return fmt.Errorf("say that the log of pod %s has ended: %w", r.committed.Pod, err)
	}
	err := store.Create(ctx, r.deps.Store, store.KindLogProgress, store.LogShippedKey(r.committed.UID), r.pending.target)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("write that the log of pod %s has ended: %w", r.committed.Pod, err)
	}
	return r.deps.Store.DeleteDoc(ctx, store.Doc{Kind: store.KindLogProgress, Key: openPrefix + r.committed.UID})
}
