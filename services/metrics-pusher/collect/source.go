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
	bus      Publisher
	log      *zap.Logger

	tail  tail
	out   joiner // standard output, or the only stream there is
	err   joiner // standard error
	place place  // what is shipped
	next  place  // what will be, once what is under way is
	skip  int64  // lines up to this sequence number were shipped by an earlier run
	dirty bool   // place has changed since it was written down

	lines   []event.Line // under way, as are these
	samples []event.Sample
	size    int    // of both in JSON, about
	sent    *batch // what is being shipped; nil for nothing

	emissions extract.Emissions
}

func (c *Collector) newSource(stream string) *source {
	files := map[string]string{event.StreamOutput: pod.Output, event.StreamMetrics: pod.Metrics, event.StreamFIFO: pod.Spool, event.StreamSystem: pod.System}
	limit := maxEmission
	if stream == event.StreamOutput {
		limit = c.settings.MaxLine
	}
	return &source{
		from: event.Source{
			Role: c.settings.Role, Index: c.settings.Index, Pod: c.settings.Pod, Container: c.settings.Container, Stream: stream,
		},
		settings: c.settings, patterns: c.patterns, bus: c.bus, log: c.log.With(zap.String("stream", stream)),
		tail: tail{path: pod.In(c.settings.Dir, files[stream])},
		out:  joiner{limit: limit},
		err:  joiner{limit: limit},
	}
}

// resume goes on where an earlier run was.
func (s *source) resume(p place) {
	s.place, s.next, s.skip = p, p, p.Done
	s.tail.seek(p.Base, p.Resume)
}

// ship ships some of what is there, and reports whether there is likely to be
// more. It returns when that is acknowledged.
func (s *source) ship(ctx context.Context) (more bool, err error) {
	if s.place.Ended || s.place.Broken {
		return false, nil
	}
	data, more, err := s.tail.next()
	if err != nil {
		return false, err
	}
	if len(data) == 0 {
		if s.tail.wasCut() {
			s.begin()
		}
		return false, nil
	}
	if s.from.Stream == event.StreamOutput {
		err = s.records(ctx, data)
	} else {
		err = s.text(ctx, data)
	}
	if err != nil {
		return false, err
	}
	return more, s.commit(ctx)
}

// begin begins anew with a file that was cut short: what it held and was not
// read is gone.
func (s *source) begin() {
	s.log.Warn("the file was cut short: reading goes on at its beginning", zap.String("file", s.tail.path))
	s.out.clear()
	s.err.clear()
	s.next.Base, s.next.Done, s.next.Resume = s.tail.base, s.tail.base, s.tail.base
	s.place, s.dirty = s.next, true
}

// text reads lines that client libraries emitted.
func (s *source) text(ctx context.Context, data []byte) error {
	now := time.Now().UnixNano()
	err := s.out.add(data, s.tail.offset(), -1, func(l line) error { return s.emitted(ctx, l, now) })
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
		j := &s.out
		if r.Err {
			j = &s.err
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
	if l.seq <= s.skip {
		return nil
	}
	var out event.Line
	out.Text, out.Raw, out.Cut = text(l.text, l.length, s.settings.MaxLine)
	out.Seq, out.Err, out.Time, out.Open = l.seq, isErr, at, open
	if err := s.addLine(ctx, out); err != nil {
		return err
	}
	first := len(s.samples)
	samples, bad := s.patterns.Append(s.samples, out.Text)
	if s.samples = samples; bad > 0 {
		s.next.Samples.drop(int64(bad), badMatch(l.seq))
	}
	return s.addSamples(ctx, first, l.seq, at)
}

// addLine has a line shipped, unless it is beyond what is to be kept.
func (s *source) addLine(ctx context.Context, l event.Line) error {
	kept := s.next.Kept + int64(len(l.Text)) + 1
	if limit := s.settings.MaxLog; limit > 0 && kept > limit {
		s.next.Kept = limit // whatever follows is not kept either
		s.next.Lines.drop(1, overLog(limit))
		return nil
	}
	size := lineSize(l)
	if err := s.room(ctx, size); err != nil {
		return err
	}
	s.next.Kept = kept
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
		s.next.Samples.drop(1, badEmission(l.seq, err))
	}
	return s.addSamples(ctx, first, l.seq, now)
}

// addSamples has the samples from number first on shipped, which were read from
// one line. Those that do not say their time are of now.
func (s *source) addSamples(ctx context.Context, first int, seq, now int64) error {
	for i := first; i < len(s.samples); i++ {
		sample := &s.samples[i]
		sample.Seq = seq
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

// room ships what is under way where there is no room beside it for size more.
func (s *source) room(ctx context.Context, size int) error {
	if s.size+size <= maxBatch {
		return nil
	}
	return s.flush(ctx)
}

// flush has what is under way shipped, after what was before it: while that goes
// on, what follows is read.
func (s *source) flush(ctx context.Context) error {
	if err := s.settle(); err != nil {
		return err
	}
	var evs []event.Event
	if n := len(s.lines); n > 0 {
		subject := fmt.Sprintf("%d-%d", s.lines[0].Seq, s.lines[n-1].Seq)
		evs = append(evs, event.Logs{Header: s.head("logs", subject), Source: s.from, Lines: s.lines})
	}
	if n := len(s.samples); n > 0 {
		first, last := s.samples[0], s.samples[n-1]
		subject := fmt.Sprintf("%d.%d-%d.%d", first.Seq, first.Sub, last.Seq, last.Sub)
		evs = append(evs, event.Metrics{Header: s.head("metrics", subject), Source: s.from, Samples: s.samples})
	}
	if len(evs) == 0 {
		return nil
	}
	s.sent = &batch{lines: s.lines, samples: s.samples, done: make(chan error, 1)}
	go func(done chan<- error) { done <- s.bus.Publish(ctx, evs...) }(s.sent.done)
	// Whoever publishes may keep what it was given.
	s.lines, s.samples, s.size = make([]event.Line, 0, len(s.lines)), make([]event.Sample, 0, len(s.samples)), 0
	return nil
}

// batch is what is being shipped.
type batch struct {
	lines   []event.Line
	samples []event.Sample
	done    chan error
}

// settle waits until what is being shipped is acknowledged, and counts it. What
// can never be shipped is dropped.
func (s *source) settle() error {
	if s.sent == nil {
		return nil
	}
	b := s.sent
	s.sent = nil
	err := <-b.done
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
	if err := errors.Join(s.flush(ctx), s.settle()); err != nil {
		return err
	}
	s.next.Done = s.tail.offset()
	s.next.Resume = s.err.under(s.out.under(s.next.Done))
	s.place, s.dirty = s.next, true
	return nil
}

// finish ships what is there and says that the source has ended. What is known of
// the benchmark's own end is told.
func (s *source) finish(ctx context.Context, exit pod.Exit) error {
	if s.place.Ended {
		return nil
	}
	end := s.tail.end()
	if s.from.Stream == event.StreamSystem && s.tail.file == nil {
		s.place.Ended, s.next.Ended, s.dirty = true, true, true // nobody measures it here: there is nothing to end
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
	if err := errors.Join(s.flush(ctx), s.settle()); err != nil {
		return err
	}
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
	l := line{text: s.out.text, length: s.out.length, seq: size + 1}
	if s.from.Stream != event.StreamOutput {
		if l.length == 0 {
			return nil
		}
		return s.emitted(ctx, l, time.Now().UnixNano())
	}
	if l.length > 0 {
		if err := s.written(ctx, l, false, s.out.last, true); err != nil {
			return err
		}
	}
	if s.err.length == 0 {
		return nil
	}
	return s.written(ctx, line{text: s.err.text, length: s.err.length, seq: size + 2}, true, s.err.last, true)
}

// last notes what of the output was never there to read.
func (s *source) last(exit pod.Exit) {
	if s.from.Stream != event.StreamOutput {
		return
	}
	if exit.Dropped > 0 {
		s.next.Lines.drop(1, unrecorded(exit.Dropped))
		s.next.Samples.drop(1, unrecorded(exit.Dropped))
	}
	if n := len(s.tail.rest); n > 0 && !s.place.Broken {
		reason := fmt.Sprintf("the last %d bytes of the record of the output are incomplete", n)
		s.next.Lines.drop(1, reason)
		s.next.Samples.drop(1, reason)
	}
}

// ends returns the source's ends, one for each topic.
func (s *source) ends() []event.Event {
	evs := []event.Event{event.Metrics{
		Header: s.head("metrics", "end"), Source: s.from, Samples: []event.Sample{}, End: s.next.Samples.end(),
	}}
	if s.from.Stream == event.StreamOutput {
		evs = append(evs, event.Logs{Header: s.head("logs", "end"), Source: s.from, Lines: []event.Line{}, End: s.next.Lines.end()})
	}
	return evs
}
