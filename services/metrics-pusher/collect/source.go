package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// source ships what is written to one file.
type source struct {
	from     event.Source
	settings Settings
	patterns *extract.Patterns
	declared extract.Declared
	series   *series // of which samples are shipped; nil for all
	lost     *losses // what is not in the file; nil where nobody of ours writes it
	bus      Publisher
	room     *room // nil: there is always room
	log      *zap.Logger

	tail      tail
	joined    joiner // standard output, or the only stream there is
	joinedErr joiner // standard error
	outs      *extract.Blocks
	errs      *extract.Blocks
	place     place        // what is shipped
	next      place        // what will be, once what is under way is
	skip      int64        // lines up to this sequence number were shipped by an earlier run
	dirty     bool         // place has changed since it was written down
	record    extract.Mark // before the record that is read

	lines   []event.Line // under way, as are these
	samples []event.Sample
	size    int   // of both in JSON, about
	ahead   int64 // bytes that were read since place was noted
	out     outbox

	emissions extract.Emissions
}

func (c *Collector) newSource(stream string) *source {
	files := map[string]string{
		event.StreamOutput: pod.Output, event.StreamMetrics: pod.Metrics, event.StreamFIFO: pod.Spool, event.StreamSystem: pod.System,
		event.StreamScraped: pod.Scraped, event.StreamOTLP: pod.OTLP,
	}
	limit := maxEmission
	if stream == event.StreamOutput {
		limit = c.settings.MaxLine
	}
	of := c.series
	if stream == event.StreamSystem {
		of = nil // they are ours, and not many
	}
	s := &source{
		series: of, lost: c.lost[stream],
		from: event.Source{
			Role: c.settings.Role, Index: c.settings.Index, Pod: c.settings.Pod, Container: c.settings.Container, Stream: stream,
		},
		settings: c.settings, patterns: c.patterns, declared: c.declared, bus: c.bus, log: c.log.With(zap.String("stream", stream)),
		tail:   tail{path: files[stream]},
		joined: joiner{limit: limit}, joinedErr: joiner{limit: limit},
		outs: c.patterns.Blocks(), errs: c.patterns.Blocks(),
	}
	s.out = outbox{bus: c.bus, settled: s.settled}
	return s
}

// resume goes on where an earlier run was.
func (s *source) resume(p place) {
	s.place, s.next, s.skip = p, p, p.Done
	s.tail.seek(p.Base, p.Resume)
}

// ship ships some of what is there, and reports whether there is likely to be
// more. Where there is not, it returns when all is acknowledged.
func (s *source) ship(ctx context.Context) (more bool, err error) {
	if s.place.Ended || s.place.Broken {
		return false, nil
	}
	s.lose()
	data, more, err := s.tail.next()
	if err != nil {
		return false, err
	}
	if len(data) == 0 {
		err := s.overdue(ctx)
		if err == nil && s.tail.wasCut() {
			s.begin()
		}
		return false, err
	}
	s.ahead += int64(len(data))
	if s.from.Stream == event.StreamOutput {
		err = s.records(ctx, data)
	} else {
		err = s.text(ctx, data)
	}
	if err != nil || more && s.ahead < maxAhead {
		return more, err
	}
	return more, s.commit(ctx)
}

// lose counts what never came to be in the file.
func (s *source) lose() {
	s.lost.take(func(n int64, reason string) {
		s.next.Samples.drop(n, reason)
		s.place.Samples.drop(n, reason)
		s.dirty = true
	})
}

// begin begins anew with a file that was cut short: what it held and was not
// read is gone.
func (s *source) begin() {
	s.log.Warn("the file was cut short: reading goes on at its beginning", zap.String("file", s.tail.path))
	s.joined.clear()
	s.joinedErr.clear()
	s.outs.Clear()
	s.errs.Clear()
	s.next.Base, s.next.Done, s.next.Resume = s.tail.base, s.tail.base, s.tail.base
	s.place, s.dirty = s.next, true
}

// text reads lines that client libraries emitted.
func (s *source) text(ctx context.Context, data []byte) error {
	now := time.Now().UnixNano()
	err := s.joined.add(data, s.tail.offset(), -1, func(l line) error { return s.emitted(ctx, l, now) })
	s.tail.used(len(data))
	return err
}

// records reads records of output.
func (s *source) records(ctx context.Context, data []byte) error {
	for {
		at := s.tail.offset()
		r, n, err := pod.ReadRecord(data)
		if err != nil {
			s.broken(at, err)
			return nil
		}
		if n == 0 {
			return nil
		}
		s.record = extract.Mark{From: s.joinedErr.under(s.joined.under(at)), After: at, Bytes: s.next.Cut.Bytes}
		j := &s.joined
		if r.Err {
			j = &s.joinedErr
		}
		j.last = r.Time
		err = j.add(r.Data, at+pod.RecordHeader, at, func(l line) error { return s.written(ctx, l, r.Err, r.Time, false) })
		if err != nil {
			return err
		}
		data = data[n:]
		s.tail.used(n)
	}
}

// broken gives up a file in which something lies that no wrapper wrote.
func (s *source) broken(at int64, err error) {
	reason := fmt.Sprintf("the record of the output is damaged at byte %d, and is not read further", at)
	s.log.Error("output is damaged", zap.Int64("offset", at), zap.Error(err))
	s.next.Lines.drop(1, reason)
	s.next.Samples.drop(1, reason)
	s.next.Broken = true
}

// written takes a line that the benchmark wrote.
func (s *source) written(ctx context.Context, l line, isErr bool, at int64, open bool) error {
	var out event.Line
	out.Text, out.Raw, out.Cut = extract.Text(l.text, l.length, s.settings.MaxLine)
	out.Seq, out.Err, out.Time, out.Open = l.seq, isErr, at, open
	blocks := s.outs
	if isErr {
		blocks = s.errs
	}
	first := len(s.samples)
	piece := extract.Piece{Text: out.Text, Cut: out.Cut, Seq: l.seq, Time: at, From: l.from}
	samples, missed := blocks.Append(s.samples, piece)
	if l.seq <= s.skip {
		s.samples = samples[:first] // they were shipped, as the line was
		return nil
	}
	if err := s.found(ctx, samples, missed, l.seq, 0); err != nil {
		return err
	}
	if err := s.addLine(ctx, out); err != nil {
		return err
	}
	samples, missed = s.patterns.Append(s.samples, piece)
	return s.found(ctx, samples, missed, l.seq, at)
}

// found has the samples shipped that were found, behind those that are under way:
// in the line with sequence number seq, which was written at a time, or in blocks
// that ended before it, whose samples say their own. What is none is counted.
func (s *source) found(ctx context.Context, samples []event.Sample, missed extract.Missed, seq, at int64) error {
	first := len(s.samples)
	s.samples = samples
	missed.Drop(seq, s.settings.MaxLine, s.next.Samples.drop)
	s.next.Untimed += int64(missed.Times)
	return s.addSamples(ctx, first, seq, at)
}

// overdue ships what is in blocks that no line has followed for long.
func (s *source) overdue(ctx context.Context) error {
	now, first := time.Now().UnixNano(), len(s.samples)
	for _, b := range []*extract.Blocks{s.outs, s.errs} {
		samples, missed := b.Due(s.samples, now)
		if err := s.found(ctx, samples, missed, s.tail.offset(), 0); err != nil {
			return err
		}
	}
	if len(s.samples) == first && s.ahead == 0 {
		return nil
	}
	return s.commit(ctx)
}

// addLine has a line shipped, unless it lies behind what is kept of the beginning.
func (s *source) addLine(ctx context.Context, l event.Line) error {
	bytes := int64(len(l.Text)) + 1
	limit := s.settings.MaxLog
	tail := tailOf(limit)
	if limit > 0 && (s.next.Cut.Lines > 0 || s.next.Kept+bytes > limit-tail) {
		s.next.Cut = s.next.Cut.Add(l.Seq, s.record, bytes, tail)
		return nil
	}
	s.next.Kept += bytes
	return s.shipLine(ctx, l)
}

func (s *source) shipLine(ctx context.Context, l event.Line) error {
	size := lineSize(l)
	if err := s.fit(ctx, size); err != nil {
		return err
	}
	s.lines, s.size = append(s.lines, l), s.size+size
	return nil
}

// emitted takes a line that a client library wrote at about now.
func (s *source) emitted(ctx context.Context, l line, now int64) error {
	if l.seq <= s.skip {
		return nil
	}
	if l.length > maxEmission {
		s.next.Samples.drop(1, badEmission(l.seq, fmt.Errorf("the line has %d bytes, %d at most", l.length, maxEmission)))
		return nil
	}
	var err error
	first := len(s.samples)
	if s.samples, err = s.emissions.Append(s.samples, l.text); err != nil {
		s.next.Samples.drop(extract.Refused(err), badEmission(l.seq, err))
	}
	return s.addSamples(ctx, first, l.seq, now)
}

// addSamples has the samples from number first on shipped, which were read from
// one line, as far as their series are kept. Those that do not say their time are
// of now.
func (s *source) addSamples(ctx context.Context, first int, seq, now int64) error {
	s.admit(first)
	s.declared.Fill(s.samples[first:])
	for i := first; i < len(s.samples); i++ {
		sample := &s.samples[i]
		if sample.Seq == 0 {
			sample.Seq = seq
		}
		if sample.Time == 0 {
			sample.Time = now
		}
		size := sampleSize(sample)
		if s.size+size > maxBatch {
			rest := slices.Clone(s.samples[i:])
			s.samples = s.samples[:i]
			if err := s.flush(ctx); err != nil {
				return err
			}
			s.samples, i = append(s.samples, rest...), 0
		}
		s.size += size
	}
	return nil
}

// admit drops those of the samples from number first on whose series are not kept.
func (s *source) admit(first int) {
	if s.series == nil || first == len(s.samples) {
		return
	}
	kept, dropped := s.series.admit(s.samples[first:])
	if s.samples = s.samples[:first+len(kept)]; dropped > 0 {
		s.next.Samples.drop(int64(dropped), s.series.tooMany())
	}
}

// fit ships what is under way where size more do not fit beside it.
func (s *source) fit(ctx context.Context, size int) error {
	if s.size+size <= maxBatch {
		return nil
	}
	return s.flush(ctx)
}

// flush has what is under way shipped, behind what was before it: while that goes
// on, what follows is read. Where nothing is shipped any more, it is counted as
// dropped.
func (s *source) flush(ctx context.Context) error {
	b := batch{lines: s.lines, samples: s.samples}
	if err := s.wait(ctx, b); errors.Is(err, errNoRoom) {
		s.next.Lines.drop(int64(len(b.lines)), unshipped)
		s.next.Samples.drop(int64(len(b.samples)), unshipped)
		s.lines, s.samples, s.size = b.lines[:0], b.samples[:0], 0
		return nil
	} else if err != nil {
		return err
	}
	if n := len(s.lines); n > 0 {
		subject := fmt.Sprintf("%d-%d", s.lines[0].Seq, s.lines[n-1].Seq)
		b.events = append(b.events, event.Logs{Header: s.head("logs", subject), Source: s.from, Lines: s.lines})
	}
	if n := len(s.samples); n > 0 {
		first, last := s.samples[0], s.samples[n-1]
		subject := fmt.Sprintf("%d.%d-%d.%d", first.Seq, first.Sub, last.Seq, last.Sub)
		b.events = append(b.events, event.Metrics{Header: s.head("metrics", subject), Source: s.from, Samples: s.samples})
	}
	if len(b.events) == 0 {
		return nil
	}
	if err := s.out.put(ctx, b); err != nil {
		return err
	}
	b = s.out.empty()
	s.lines, s.samples, s.size = b.lines, b.samples, 0
	return nil
}

// wait waits until there is room to ship a batch.
func (s *source) wait(ctx context.Context, b batch) error {
	if len(b.lines)+len(b.samples) == 0 {
		return nil
	}
	return s.room.wait(ctx)
}

// settled counts a batch that is shipped. What can never be is dropped.
func (s *source) settled(b batch, err error) error {
	switch {
	case errors.Is(err, event.ErrPoison):
		s.log.Error("cannot be shipped", zap.Error(err))
		s.next.Lines.drop(int64(len(b.lines)), "could not be shipped: "+err.Error())
		s.next.Samples.drop(int64(len(b.samples)), "could not be shipped: "+err.Error())
	case err != nil:
		return fmt.Errorf("ship what %s holds from byte %d: %w", s.tail.path, s.place.Done, err)
	default:
		if n := len(b.lines); n > 0 {
			s.next.Lines.ship(n, b.lines[n-1].Seq)
		}
		if n := len(b.samples); n > 0 {
			s.next.Samples.ship(n, b.samples[n-1].Seq)
		}
	}
	return nil
}

// head returns the header of what is said of the source.
func (s *source) head(kind, subject string) event.Header {
	h := s.settings.Header
	return h.Cause(kind, s.from.ID(h.Run, h.Attempt)+" "+subject)
}

// commit ships what is under way and notes how far that is.
func (s *source) commit(ctx context.Context) error {
	if err := s.drain(ctx); err != nil {
		return err
	}
	s.next.Done = s.tail.offset()
	s.next.Resume = s.errs.Under(s.outs.Under(s.joinedErr.under(s.joined.under(s.next.Done))))
	s.place, s.dirty, s.ahead = s.next, true, 0
	return nil
}

// drain ships what is under way.
func (s *source) drain(ctx context.Context) error {
	if err := s.flush(ctx); err != nil {
		return err
	}
	return s.out.drain(ctx)
}

// finish ships what is there and says that the source has ended. What is known of
// the benchmark's own end is told.
func (s *source) finish(ctx context.Context, exit pod.Exit) error {
	if s.place.Ended {
		return nil
	}
	end := s.tail.end()
	if s.tail.file == nil && !slices.Contains([]string{event.StreamOutput, event.StreamMetrics, event.StreamFIFO}, s.from.Stream) {
		s.place.Ended, s.next.Ended, s.dirty = true, true, true // nobody writes it here: there is nothing to end
		return nil
	}
	for s.tail.pos < end {
		before := s.tail.pos
		if _, err := s.ship(ctx); err != nil {
			return err
		}
		if s.tail.pos == before {
			break
		}
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	if err := s.end(ctx); err != nil {
		return err
	}
	if err := s.drain(ctx); err != nil {
		return err
	}
	s.lose()
	s.last(exit)
	if err := s.bus.Publish(ctx, s.ends()...); err != nil {
		return fmt.Errorf("say that %s has ended: %w", s.tail.path, err)
	}
	s.next.Ended = true
	s.place, s.dirty = s.next, true
	s.log.Info("shipped", zap.Int64("lines", s.place.Lines.Count), zap.Int64("samples", s.place.Samples.Count),
		zap.Int64("dropped_lines", s.place.Lines.Dropped), zap.Int64("dropped_samples", s.place.Samples.Dropped),
		zap.String("lines_because", s.place.Lines.Reason), zap.String("samples_because", s.place.Samples.Reason))
	return nil
}

// open takes the last lines, which have no line feed.
func (s *source) open(ctx context.Context) error {
	if s.place.Broken {
		return nil
	}
	size := s.tail.pos
	l := line{text: s.joined.text, length: s.joined.length, seq: size + 1}
	if s.from.Stream != event.StreamOutput {
		if l.length == 0 {
			return nil
		}
		return s.emitted(ctx, l, time.Now().UnixNano())
	}
	if l.length > 0 {
		if err := s.written(ctx, l, false, s.joined.last, true); err != nil {
			return err
		}
	}
	if s.joinedErr.length > 0 {
		if err := s.written(ctx, line{text: s.joinedErr.text, length: s.joinedErr.length, seq: size + 2}, true, s.joinedErr.last, true); err != nil {
			return err
		}
	}
	for _, b := range []*extract.Blocks{s.outs, s.errs} {
		samples, missed := b.End(s.samples)
		if err := s.found(ctx, samples, missed, size+3, 0); err != nil {
			return err
		}
	}
	return nil
}

// last notes what of the output was never there to read.
func (s *source) last(exit pod.Exit) {
	if s.from.Stream != event.StreamOutput {
		return
	}
	if exit.Dropped > 0 {
		s.next.Lines.drop(max(1, exit.DroppedLines), unrecorded(exit.Dropped))
		s.next.Samples.drop(1, unrecorded(exit.Dropped))
	}
	if n := len(s.tail.rest); n > 0 && !s.place.Broken {
		reason := fmt.Sprintf("the last %d bytes of the record of the output are incomplete", n)
		s.next.Lines.drop(1, reason)
		s.next.Samples.drop(1, reason)
	}
}

// ends returns the source's ends, one for each topic, and before them what the user
// has to know of its samples.
func (s *source) ends() []event.Event {
	var evs []event.Event
	if n := s.next.Untimed; n > 0 {
		said := fmt.Sprintf("%s of %s-%d", s.from.Stream, s.from.Role, s.from.Index)
		evs = append(evs, event.Status{Header: s.head("status", "times"), Phase: event.PhaseRunning, Message: extract.Untimed(n, said)})
	}
	evs = append(evs, event.Metrics{
		Header: s.head("metrics", "end"), Source: s.from, Samples: []event.Sample{}, End: s.next.Samples.end(),
	})
	if s.from.Stream == event.StreamOutput {
		evs = append(evs, event.Logs{Header: s.head("logs", "end"), Source: s.from, Lines: []event.Line{}, End: s.next.Lines.end()})
	}
	return evs
}
