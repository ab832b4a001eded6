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
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/spool"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// shipper ships the data of one file.
type shipper struct {
	stream   event.Stream
	settings Settings
	patterns *extract.Patterns
	declared extract.Declared
	series   *spool.SeriesSet // series whose samples are shipped; nil for all
	losses   *spool.Losses    // lines and samples that never reached the file; nil if the collector does not write it
	bus      Publisher
	disk     *diskMonitor // nil means that there is always room
	log      *zap.Logger

	tail      tail
	exitFile  string     // how the program ended that writes the file
	outLines  lineJoiner // standard output, or the only stream
	errLines  lineJoiner // standard error
	outBlocks *extract.Blocks
	errBlocks *extract.Blocks
	committed shipProgress // everything up to here is shipped
	pending   shipProgress // like committed, once all started batches are published
	skipSeq   int64        // lines up to this sequence number were shipped by an earlier run
	dirty     bool         // committed has changed since it was written to the cursor
	record    extract.Mark // position before the record that is being read

	lines       []event.Line // under way, as are these
	samples     []event.Sample
	size        int   // of both in JSON, about
	uncommitted int64 // bytes that were read since place was noted
	outbox      outbox

	emissions extract.Emissions
}

// stepShippers returns the shippers of the output of the steps.
func (c *Collector) stepShippers() []*shipper {
	var all []*shipper
	none := new(extract.Patterns)
	for _, name := range c.settings.Steps {
		s := c.newShipper(event.StreamStep)
		s.stream.Container, s.patterns, s.outBlocks, s.errBlocks = pod.ContainerStep+name, none, none.Blocks(), none.Blocks()
		s.tail.path, s.exitFile, s.log = pod.StepOutput(name), pod.StepExit(name), s.log.With(zap.String("step", name))
		all = append(all, s)
	}
	return all
}

// kindShippers returns the shippers of the benchmark, one for each kind of stream.
func (c *Collector) kindShippers() []*shipper {
	var all []*shipper
	for _, stream := range streams(c.settings) {
		all = append(all, c.newShipper(stream))
	}
	return all
}

// hasRecords reports whether the file of a stream holds records of an entrypoint, and not lines of a client library.
func hasRecords(stream string) bool {
	return stream == event.StreamOutput || stream == event.StreamStep
}

// key returns the name of the stream in the cursor.
func (s *shipper) key() string {
	if s.stream.Kind == event.StreamStep {
		return s.stream.Container
	}
	return s.stream.Kind
}

func (c *Collector) newShipper(stream string) *shipper {
	files := map[string]string{
		event.StreamOutput: pod.Output, event.StreamMetrics: pod.Metrics, event.StreamFIFO: pod.Spool, event.StreamSystem: pod.System,
		event.StreamScraped: pod.Scraped, event.StreamOTLP: pod.OTLP,
	}
	limit := maxEmission
	if hasRecords(stream) {
		limit = c.settings.MaxLine
	}
	seriesOf := c.series
	if stream == event.StreamSystem {
		seriesOf = nil // they are ours, and not many
	}
	s := &shipper{
		series: seriesOf, losses: c.losses[stream],
		stream: event.Stream{
			Role: c.settings.Role, Index: c.settings.Index, Pod: c.settings.Pod, Container: c.settings.Container, Kind: stream,
		},
		settings: c.settings, patterns: c.patterns, declared: c.declared, bus: c.bus, log: c.log.With(zap.String("stream", stream)),
		tail: tail{path: files[stream]}, exitFile: pod.ExitFile,
		outLines: lineJoiner{limit: limit}, errLines: lineJoiner{limit: limit},
		outBlocks: c.patterns.Blocks(), errBlocks: c.patterns.Blocks(),
	}
	s.outbox = outbox{bus: c.bus, onPublished: s.onPublished}
	return s
}

// resume continues from the progress of an earlier run.
func (s *shipper) resume(p shipProgress) {
	s.committed, s.pending, s.skipSeq = p, p, p.Done
	s.outBlocks.RestoreClosed(p.ClosedOut)
	s.errBlocks.RestoreClosed(p.ClosedErr)
	s.tail.seek(p.Base, p.Resume)
}

// ship ships a part of the new data, and reports whether there is likely to be more. If there is no more, it returns when all is
// acknowledged.
func (s *shipper) ship(ctx context.Context) (more bool, err error) {
	if s.committed.Ended || s.committed.Damaged {
		return false, nil
	}
	s.countLosses()
	data, more, err := s.tail.next()
	if err != nil {
		return false, err
	}
	if len(data) == 0 {
		err := s.flushExpiredBlocks(ctx)
		if err == nil && s.tail.wasTruncated() {
			s.restartFile()
		}
		return false, err
	}
	s.uncommitted += int64(len(data))
	if hasRecords(s.stream.Kind) {
		err = s.readRecords(ctx, data)
	} else {
		err = s.readEmitted(ctx, data)
	}
	if err != nil || more && s.uncommitted < maxAhead {
		return more, err
	}
	return more, s.commit(ctx)
}

// countLosses counts the samples that never reached the file.
func (s *shipper) countLosses() {
	s.losses.Take(func(n int64, reason string) {
		s.pending.Samples.drop(n, reason)
		s.committed.Samples.drop(n, reason)
		s.dirty = true
	})
}

// restartFile starts again at the beginning of a file that was truncated. Unread data of before are lost.
func (s *shipper) restartFile() {
	s.log.Warn("the file was cut short: reading goes on at its beginning", zap.String("file", s.tail.path))
	s.outLines.clear()
	s.errLines.clear()
	s.outBlocks.Clear()
	s.errBlocks.Clear()
	s.pending.Base, s.pending.Done, s.pending.Resume = s.tail.base, s.tail.base, s.tail.base
	s.committed, s.dirty = s.pending, true
}

// readEmitted reads lines that client libraries emitted.
func (s *shipper) readEmitted(ctx context.Context, data []byte) error {
	now := time.Now().UnixNano()
	err := s.outLines.add(data, s.tail.offset(), -1, func(l line) error { return s.addEmittedLine(ctx, l, now) })
	s.tail.used(len(data))
	return err
}

// readRecords reads records of output.
func (s *shipper) readRecords(ctx context.Context, data []byte) error {
	for {
		at := s.tail.offset()
		r, n, err := pod.ReadRecord(data)
		if err != nil {
			s.abandonFile(at, err)
			return nil
		}
		if n == 0 {
			return nil
		}
		s.record = extract.Mark{From: s.errLines.resumeOffset(s.outLines.resumeOffset(at)), After: at, Bytes: s.pending.Cut.Bytes}
		j := &s.outLines
		if r.Err {
			j = &s.errLines
		}
		j.last = r.Time
		err = j.add(r.Data, at+pod.RecordHeader, at, func(l line) error { return s.addOutputLine(ctx, l, r.Err, r.Time, false) })
		if err != nil {
			return err
		}
		data = data[n:]
		s.tail.used(n)
	}
}

// abandonFile stops reading a file that holds data which no entrypoint wrote.
func (s *shipper) abandonFile(at int64, err error) {
	reason := fmt.Sprintf("the record of the output is damaged at byte %d, and is not read further", at)
	s.log.Error("output is damaged", zap.Int64("offset", at), zap.Error(err))
	s.pending.Lines.drop(1, reason)
	s.pending.Samples.drop(1, reason)
	s.pending.Damaged = true
}

// addOutputLine ships a line of the output and the samples in it.
func (s *shipper) addOutputLine(ctx context.Context, l line, isErr bool, at int64, open bool) error {
	var out event.Line
	out.Text, out.Raw, out.Truncated = extract.LineText(l.text, l.length, s.settings.MaxLine)
	out.Seq, out.Stderr, out.Time, out.Unterminated = l.seq, isErr, at, open
	blocks := s.outBlocks
	if isErr {
		blocks = s.errBlocks
	}
	first := len(s.samples)
	piece := extract.Line{Text: out.Text, Cut: out.Truncated, Seq: l.seq, Time: at, From: l.from}
	samples, missed := blocks.Append(s.samples, piece)
	if l.seq <= s.skipSeq {
		s.samples = samples[:first] // they were shipped, as the line was
		return nil
	}
	if err := s.addFound(ctx, samples, missed, l.seq, 0); err != nil {
		return err
	}
	if err := s.addLine(ctx, out); err != nil {
		return err
	}
	samples, missed = s.patterns.Append(s.samples, piece)
	return s.addFound(ctx, samples, missed, l.seq, at)
}

// addFound ships new samples behind those in s.samples. They were found in the line with sequence number seq, written at time at, or in
// blocks that ended before it, whose samples have a time of their own. Matches that are no samples are counted.
func (s *shipper) addFound(ctx context.Context, samples []event.Sample, missed extract.Misses, seq, at int64) error {
	first := len(s.samples)
	s.samples = samples
	missed.Report(seq, s.settings.MaxLine, s.pending.Samples.drop)
	s.pending.Untimed += int64(missed.Times)
	return s.addSamples(ctx, first, seq, at)
}

// flushExpiredBlocks ships the samples of blocks that no line has followed in their time.
func (s *shipper) flushExpiredBlocks(ctx context.Context) error {
	now, first := time.Now().UnixNano(), len(s.samples)
	for _, b := range []*extract.Blocks{s.outBlocks, s.errBlocks} {
		samples, missed := b.Expire(s.samples, now)
		if err := s.addFound(ctx, samples, missed, s.tail.offset(), 0); err != nil {
			return err
		}
	}
	if len(s.samples) == first && s.uncommitted == 0 {
		return nil
	}
	return s.commit(ctx)
}

// addLine ships a line, unless it lies behind the stored beginning of the log.
func (s *shipper) addLine(ctx context.Context, l event.Line) error {
	bytes := int64(len(l.Text)) + 1
	limit := s.settings.MaxLog
	tail := tailOf(limit)
	if limit > 0 && (s.pending.Cut.Lines > 0 || s.pending.HeadBytes+bytes > limit-tail) {
		s.pending.Cut = s.pending.Cut.Add(l.Seq, s.record, bytes, tail)
		return nil
	}
	s.pending.HeadBytes += bytes
	return s.shipLine(ctx, l)
}

func (s *shipper) shipLine(ctx context.Context, l event.Line) error {
	size := lineSize(l)
	if err := s.makeRoom(ctx, size); err != nil {
		return err
	}
	s.lines, s.size = append(s.lines, l), s.size+size
	return nil
}

// addEmittedLine ships the samples of a line that a client library wrote at about now.
func (s *shipper) addEmittedLine(ctx context.Context, l line, now int64) error {
	if l.seq <= s.skipSeq {
		return nil
	}
	if l.length > maxEmission {
		s.pending.Samples.drop(1, badEmission(l.seq, fmt.Errorf("the line has %d bytes, %d at most", l.length, maxEmission)))
		return nil
	}
	var err error
	first := len(s.samples)
	if s.samples, err = s.emissions.Append(s.samples, l.text); err != nil {
		s.pending.Samples.drop(extract.Refused(err), badEmission(l.seq, err))
	}
	return s.addSamples(ctx, first, l.seq, now)
}

// addSamples ships the samples from index first on, which were read from one line, as far as their series are stored. Samples without a
// time get now.
func (s *shipper) addSamples(ctx context.Context, first int, seq, now int64) error {
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

// admit drops the samples from index first on whose series are not stored.
func (s *shipper) admit(first int) {
	if s.series == nil || first == len(s.samples) {
		return
	}
	admitted, dropped := s.series.Admit(s.samples[first:])
	if s.samples = s.samples[:first+len(admitted)]; dropped > 0 {
		s.pending.Samples.drop(int64(dropped), s.series.TooMany())
	}
}

// makeRoom flushes the open batch if size more bytes do not fit into it.
func (s *shipper) makeRoom(ctx context.Context, size int) error {
	if s.size+size <= maxBatch {
		return nil
	}
	return s.flush(ctx)
}

// flush starts to publish the open batch behind the earlier ones, and returns before it is published, so that reading continues. If nothing
// is shipped any more, the lines and samples count as dropped.
func (s *shipper) flush(ctx context.Context) error {
	b := batch{lines: s.lines, samples: s.samples}
	if err := s.wait(ctx, b); errors.Is(err, errDiskFull) {
		s.pending.Lines.drop(int64(len(b.lines)), reasonDiskFull)
		s.pending.Samples.drop(int64(len(b.samples)), reasonDiskFull)
		s.lines, s.samples, s.size = b.lines[:0], b.samples[:0], 0
		return nil
	} else if err != nil {
		return err
	}
	if n := len(s.lines); n > 0 {
		subject := fmt.Sprintf("%d-%d", s.lines[0].Seq, s.lines[n-1].Seq)
		b.events = append(b.events, event.Logs{Header: s.eventHeader("logs", subject), Stream: s.stream, Lines: s.lines})
	}
	if n := len(s.samples); n > 0 {
		first, last := s.samples[0], s.samples[n-1]
		subject := fmt.Sprintf("%d.%d-%d.%d", first.Seq, first.Sub, last.Seq, last.Sub)
		b.events = append(b.events, event.Metrics{Header: s.eventHeader("metrics", subject), Stream: s.stream, Samples: s.samples})
	}
	if len(b.events) == 0 {
		return nil
	}
	if err := s.outbox.put(ctx, b); err != nil {
		return err
	}
	b = s.outbox.empty()
	s.lines, s.samples, s.size = b.lines, b.samples, 0
	return nil
}

// wait waits until the disk has room to ship a batch.
func (s *shipper) wait(ctx context.Context, b batch) error {
	if len(b.lines)+len(b.samples) == 0 {
		return nil
	}
	return s.disk.wait(ctx)
}

// onPublished counts a published batch. A batch that can never be published counts as dropped.
func (s *shipper) onPublished(b batch, err error) error {
	switch {
	case errors.Is(err, event.ErrPoison):
		s.log.Error("cannot be shipped", zap.Error(err))
		s.pending.Lines.drop(int64(len(b.lines)), "could not be shipped: "+err.Error())
		s.pending.Samples.drop(int64(len(b.samples)), "could not be shipped: "+err.Error())
	case err != nil:
		return fmt.Errorf("ship what %s holds from byte %d: %w", s.tail.path, s.committed.Done, err)
	default:
		if n := len(b.lines); n > 0 {
			s.pending.Lines.ship(n, b.lines[n-1].Seq)
		}
		if n := len(b.samples); n > 0 {
			s.pending.Samples.ship(n, b.samples[n-1].Seq)
		}
	}
	return nil
}

// eventHeader returns the header of an event about the source.
func (s *shipper) eventHeader(kind, subject string) event.Header {
	h := s.settings.Header
	return h.Cause(kind, s.stream.ID(h.Run, h.Attempt)+" "+subject)
}

// commit ships all batches and notes how far the source is shipped.
func (s *shipper) commit(ctx context.Context) error {
	if err := s.drain(ctx); err != nil {
		return err
	}
	s.pending.Done = s.tail.offset()
	s.pending.Resume = s.errBlocks.ResumeOffset(s.outBlocks.ResumeOffset(s.errLines.resumeOffset(s.outLines.resumeOffset(s.pending.Done))))
	s.pending.ClosedOut, s.pending.ClosedErr = s.outBlocks.Closed(), s.errBlocks.Closed()
	s.committed, s.dirty, s.uncommitted = s.pending, true, 0
	return nil
}

// drain ships the open batch and waits until all batches are published.
func (s *shipper) drain(ctx context.Context) error {
	if err := s.flush(ctx); err != nil {
		return err
	}
	return s.outbox.drain(ctx)
}

// finish ships the rest of the source and publishes its ends, with the lines that the entrypoint dropped according to exit.
func (s *shipper) finish(ctx context.Context, exit pod.Exit) error {
	if s.committed.Ended {
		return nil
	}
	end := s.tail.end()
	if s.tail.file == nil && !slices.Contains([]string{event.StreamOutput, event.StreamMetrics, event.StreamFIFO}, s.stream.Kind) {
		s.committed.Ended, s.pending.Ended, s.dirty = true, true, true // no program writes this file here: there is no source to end
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
	if err := s.flushOpenLines(ctx); err != nil {
		return err
	}
	if err := s.shipTail(ctx); err != nil {
		return err
	}
	if err := s.drain(ctx); err != nil {
		return err
	}
	s.countLosses()
	s.countUnread(exit)
	if err := s.bus.Publish(ctx, s.endEvents()...); err != nil {
		return fmt.Errorf("say that %s has ended: %w", s.tail.path, err)
	}
	s.pending.Ended = true
	s.committed, s.dirty = s.pending, true
	s.log.Info("shipped", zap.Int64("lines", s.committed.Lines.Count), zap.Int64("samples", s.committed.Samples.Count),
		zap.Int64("dropped_lines", s.committed.Lines.Dropped), zap.Int64("dropped_samples", s.committed.Samples.Dropped),
		zap.String("lines_because", s.committed.Lines.Reason), zap.String("samples_because", s.committed.Samples.Reason))
	return nil
}

// flushOpenLines ships the last lines, which have no line feed.
func (s *shipper) flushOpenLines(ctx context.Context) error {
	if s.committed.Damaged {
		return nil
	}
	size := s.tail.pos
	l := line{text: s.outLines.text, length: s.outLines.length, seq: size + 1}
	if !hasRecords(s.stream.Kind) {
		if l.length == 0 {
			return nil
		}
		return s.addEmittedLine(ctx, l, time.Now().UnixNano())
	}
	if l.length > 0 {
		if err := s.addOutputLine(ctx, l, false, s.outLines.last, true); err != nil {
			return err
		}
	}
	if s.errLines.length > 0 {
		if err := s.addOutputLine(ctx, line{text: s.errLines.text, length: s.errLines.length, seq: size + 2}, true,
			s.errLines.last, true); err != nil {
			return err
		}
	}
	for _, b := range []*extract.Blocks{s.outBlocks, s.errBlocks} {
		samples, missed := b.End(s.samples)
		if err := s.addFound(ctx, samples, missed, size+3, 0); err != nil {
			return err
		}
	}
	return nil
}

// countUnread counts the output that the entrypoint dropped, and a last record that is incomplete.
func (s *shipper) countUnread(exit pod.Exit) {
	if !hasRecords(s.stream.Kind) {
		return
	}
	if exit.Dropped > 0 {
		s.pending.Lines.drop(max(1, exit.DroppedLines), unrecorded(exit.Dropped))
		s.pending.Samples.drop(1, unrecorded(exit.Dropped))
	}
	if n := len(s.tail.rest); n > 0 && !s.committed.Damaged {
		reason := fmt.Sprintf("the last %d bytes of the record of the output are incomplete", n)
		s.pending.Lines.drop(1, reason)
		s.pending.Samples.drop(1, reason)
	}
}

// endEvents returns the source's ends, one for each topic, and before them a status for the user about samples without a readable time.
func (s *shipper) endEvents() []event.Event {
	var evs []event.Event
	if n := s.pending.Untimed; n > 0 {
		name := fmt.Sprintf("%s of %s-%d", s.stream.Kind, s.stream.Role, s.stream.Index)
		evs = append(evs, event.Status{
			Header: s.eventHeader("status", "times"), Phase: event.PhaseRunning,
			Message: extract.UntimedNotice(n, name),
		})
	}
	evs = append(evs, event.Metrics{
		Header: s.eventHeader("metrics", "end"), Stream: s.stream, Samples: []event.Sample{}, End: s.pending.Samples.end(),
	})
	if hasRecords(s.stream.Kind) {
		evs = append(evs, event.Logs{
			Header: s.eventHeader("logs", "end"), Stream: s.stream,
			Lines: []event.Line{}, End: s.pending.Lines.end(),
		})
	}
	return evs
}
