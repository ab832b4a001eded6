package follow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// Times of a reading.
const (
	linger    = 200 * time.Millisecond // how long a line waits for others to be shipped with
	saveEvery = time.Second            // how often how far it is is written down
)

// reading reads one log and ships it.
type reading struct {
	deps     Deps
	header   event.Header
	patterns *extract.Patterns
	blocks   *extract.Blocks // of lines of this connection: a block that it breaks off ends there
	series   extract.Series  // of which samples are shipped: who goes on elsewhere begins to count anew
	limit    int64           // bytes that are kept; 0 is no limit
	tail     ending          // of the log, where it is over the limit

	version int64
	saved   time.Time
	dirty   bool
	place   Place // what is shipped
	next    Place // what will be, once what is under way is

	lines   []event.Line // under way, as are these
	samples []event.Sample
	size    int
}

// reading returns one that goes on at a place.
func (f *follower) reading(ctx context.Context, t *trail, p Place, version int64) (*reading, error) {
	run, err := f.deps.Store.Run(ctx, p.Ref.Run)
	if err != nil {
		return nil, fmt.Errorf("look what run %s is: %w", p.Ref.Run, err)
	}
	d, faults := descriptors.Parser{Accepted: true}.Parse(run.File, []byte(run.Descriptor))
	h := event.NewHeader(event.Derive("follow", p.UID), run.ID, run.Namespace, run.Owner, p.Made)
	h.Attempt, h.Lineage = max(1, p.Ref.Attempt), run.Lineage
	if d == nil {
		if err := f.aside(ctx, t, h, run.Descriptor, faults); err != nil {
			return nil, err
		}
		d = &descriptors.Descriptor{Limits: descriptors.LimitsOf([]byte(run.Descriptor))}
		p.Samples.drop(0, noPatterns)
	}
	metrics, limit := metricsOf(d, p.Role, f.settings.MaxLog)
	patterns, err := extract.Compile(metrics)
	if err != nil {
		return nil, err
	}
	return &reading{deps: f.deps, header: h, patterns: patterns, blocks: patterns.Blocks(), series: extract.Series{Most: seriesOf(d, p.Role)}, limit: limit, tail: ending{keep: extract.TailOf(limit, mostTail)}, version: version, place: p, next: p, saved: f.deps.Clock()}, nil
}

// piece is a line as it was read, or why there are no more.
type piece struct {
	text   []byte
	length int
	open   bool
	err    error
}

// pass reads the log from the last line that was shipped on, until it ends or the
// connection does. A line without an end is shipped in the last pass only.
func (r *reading) pass(ctx context.Context, last bool) error {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := r.deps.Cluster.Log(ctx, cluster.Log{
		Scope: r.place.Ref.Scope, Pod: r.place.Pod, Container: cluster.ContainerBenchmark, Since: r.place.since(),
	})
	if err != nil {
		cancel()
		return err
	}
	pieces := make(chan piece)
	go read(ctx, stream, pieces)
	defer func() {
		cancel()
		_ = stream.Close() // it was only read
		for range pieces { // until the reader has ended
		}
	}()
	return r.take(ctx, pieces, last)
}

// read hands lines over until there are no more, or ctx is done.
func read(ctx context.Context, stream io.Reader, pieces chan<- piece) {
	defer close(pieces)
	for l := newLines(stream); ; {
		text, length, open, err := l.next(maxLine + len(time.RFC3339Nano) + 1)
		select {
		case pieces <- piece{text, length, open, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// take ships lines as they come, in batches.
func (r *reading) take(ctx context.Context, pieces <-chan piece, last bool) error {
	var before int64 // the number of the line before
	due := time.NewTicker(linger)
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
				r.have(samples, missed, event.Line{Seq: r.next.Seq})
				return r.flush(ctx)
			case p.err != nil:
				return errors.Join(r.flush(ctx), fmt.Errorf("read the log of pod %s: %w", r.place.Pod, p.err))
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
func (r *reading) add(ctx context.Context, p piece, before int64) (int64, error) {
	at, text, ok := stamped(p.text)
	if !ok {
		r.next.Lines.drop(0, "the cluster says of its log: "+string(p.text[:min(len(p.text), 200)]))
		return before, nil
	}
	seq := next(r.place.Made, at, before)
	length := int64(p.length - (len(p.text) - len(text)))
	l := lineOf(text, length, seq, at, p.open)
	if seq <= r.next.Seq { // it is shipped, or of the end
		if c := r.next.Cut; len(c.Marks) > 0 && seq > c.Marks[0].After {
			r.tail.add(l)
		}
		return seq, nil
	}
	if r.size+len(l.Text) > maxBatch || len(r.samples) > maxSamples {
		if err := r.flush(ctx); err != nil {
			return before, err
		}
	}
	r.keep(l)
	r.next.Seq, r.next.Time = seq, at
	return seq, nil
}

// keep has a line, unless it lies behind what is kept of the beginning, and the samples
// in it shipped.
func (r *reading) keep(l event.Line) {
	first, piece := len(r.samples), extract.Piece{Text: l.Text, Cut: l.Cut, Seq: l.Seq, Time: l.Time}
	samples, missed := r.blocks.Append(r.samples, piece)
	r.have(samples, missed, l)
	samples, missed = r.patterns.Append(r.samples, piece)
	r.have(samples, missed, l)
	r.size += 100 * (1 + len(r.samples) - first)
	if c := r.next.Cut; r.limit > 0 && (c.Lines > 0 || r.next.Kept+sizeOf(l) > r.limit-r.tail.keep) {
		r.next.Cut = c.Add(l.Seq, extract.Mark{From: l.Time, After: l.Seq - 1, Bytes: c.Bytes}, sizeOf(l), r.tail.keep)
		r.tail.add(l)
		return
	}
	r.next.Kept += sizeOf(l)
	r.ship(l)
}

func (r *reading) ship(l event.Line) { r.lines, r.size = append(r.lines, l), r.size+len(l.Text) }

// end ships the end of a log that is over its limit, and counts the lines between it
// and the beginning.
func (r *reading) end(ctx context.Context) error {
	c := r.next.Cut
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
		r.next.Lines.drop(n, extract.OverLog(r.limit, c.Bytes-r.tail.bytes))
	}
	return nil
}

// have has samples shipped, behind those that are, as far as their series are
// kept. What they do not say is what l says, the line that they were found at.
func (r *reading) have(samples []event.Sample, missed extract.Missed, l event.Line) {
	missed.Drop(l.Seq, maxLine, r.next.Samples.drop)
	r.next.Untimed += int64(missed.Times)
	for i := len(r.samples); i < len(samples); i++ {
		s := samples[i]
		if !r.series.Admit(&s) {
			r.next.Samples.drop(1, r.series.TooMany())
			continue
		}
		s.Seq, s.Time = cmp.Or(s.Seq, l.Seq), cmp.Or(s.Time, l.Time)
		r.samples = append(r.samples, s)
	}
}

// flush ships what is under way.
func (r *reading) flush(ctx context.Context) error {
	var evs []event.Event
	if n := len(r.lines); n > 0 {
		evs = append(evs, event.Logs{Header: r.head("logs", fmt.Sprintf("%d-%d", r.lines[0].Seq, r.lines[n-1].Seq)), Source: r.place.source(), Lines: r.lines})
		r.next.Lines.ship(n, r.lines[n-1].Seq)
	}
	if n := len(r.samples); n > 0 {
		first, last := r.samples[0], r.samples[n-1]
		subject := fmt.Sprintf("%d.%d-%d.%d", first.Seq, first.Sub, last.Seq, last.Sub)
		evs = append(evs, event.Metrics{Header: r.head("metrics", subject), Source: r.place.source(), Samples: r.samples})
		r.next.Samples.ship(n, last.Seq)
	}
	if len(evs) > 0 {
		if err := r.deps.Bus.Publish(ctx, evs...); err != nil {
			r.forget()
			return fmt.Errorf("ship the log of pod %s: %w", r.place.Pod, err)
		}
		r.lines, r.samples, r.size = nil, nil, 0 // whoever publishes may keep what it was given
	}
	r.dirty = r.dirty || r.place.Seq != r.next.Seq
	r.place = r.next
	return nil
}

// forget takes back what could not be shipped: it is read again.
func (r *reading) forget() { r.next, r.lines, r.samples, r.size = r.place, nil, nil, 0 }

// head returns the header of what is said of the log.
func (r *reading) head(kind, subject string) event.Header {
	return r.header.Cause(kind, r.place.source().ID(r.header.Run, r.header.Attempt)+" "+subject)
}

func (r *reading) saveDue(ctx context.Context) error {
	if r.deps.Clock().Sub(r.saved) < saveEvery {
		return nil
	}
	return r.save(ctx)
}

// save writes down how far the log is shipped. Whoever else has written it since
// follows it, too: this one ends.
func (r *reading) save(ctx context.Context) error {
	r.saved = r.deps.Clock()
	if !r.dirty {
		return nil
	}
	value, err := json.Marshal(r.place)
	if err != nil {
		return fmt.Errorf("write how far the log of pod %s is shipped: %w", r.place.Pod, err)
	}
	version, err := r.deps.Store.ReplaceDoc(ctx, store.Doc{Kind: store.KindFollowed, Key: open + r.place.UID, Version: r.version, Value: value})
	if err != nil {
		return fmt.Errorf("write how far the log of pod %s is shipped: %w", r.place.Pod, err)
	}
	r.version, r.dirty = version, false
	return nil
}

// finish says that the log has ended, and writes that down.
func (r *reading) finish(ctx context.Context) error {
	var said []event.Event
	if n := r.next.Untimed; n > 0 {
		of := fmt.Sprintf("%s of %s-%d", event.StreamLog, r.place.Role, r.place.Index)
		said = append(said, event.Status{Header: r.head("status", "times"), Phase: event.PhaseRunning, Message: extract.Untimed(n, of)})
	}
	if err := r.deps.Bus.Publish(ctx, append(said,
		event.Metrics{Header: r.head("metrics", "end"), Source: r.place.source(), Samples: []event.Sample{}, End: r.next.Samples.end()},
		event.Logs{Header: r.head("logs", "end"), Source: r.place.source(), Lines: []event.Line{}, End: r.next.Lines.end()},
	)...); err != nil {
		return fmt.Errorf("say that the log of pod %s has ended: %w", r.place.Pod, err)
	}
	err := store.Create(ctx, r.deps.Store, store.KindFollowed, store.Followed(r.place.UID), r.next.Target)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("write that the log of pod %s has ended: %w", r.place.Pod, err)
	}
	return r.deps.Store.DeleteDoc(ctx, store.Doc{Kind: store.KindFollowed, Key: open + r.place.UID})
}
