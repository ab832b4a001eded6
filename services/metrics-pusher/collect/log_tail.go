package collect

import (
	"context"
	"errors"
	"os"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/volume"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// releaseEvery is the least number of bytes of the output file that are given back to the disk at once.
const releaseEvery = 1 << 20

// releaseDisk gives the shipped part of the output file back to the disk, up to the offset in the written cursor and without the bytes that
// the end of the log needs. The offsets in the file stay. On a file system without hole punching the file keeps all bytes.
func (s *shipper) releaseDisk() {
	limit := s.settings.MaxLog
	small := s.committed.Cut.Lines == 0 && s.committed.Done-s.committed.Base <= limit/2
	if limit <= 0 || small || s.tail.file == nil || s.committed.Damaged {
		return
	}
	to := s.committed.Resume
	if marks := s.committed.Cut.Marks; len(marks) > 0 {
		to = min(to, marks[0].From)
	}
	if to -= s.tail.base; to-s.tail.released < releaseEvery {
		return
	}
	if err := s.tail.punchHole(to); err != nil {
		s.log.Warn("the disk does not take back what of the output is shipped", zap.Error(err))
	}
}

// punchHole frees the bytes of the file from the last hole up to offset to. After an error the next call continues behind to.
func (t *tail) punchHole(to int64) error {
	from := t.released
	t.released = to
	f, err := t.volume.Open(t.path, os.O_WRONLY)
	if err != nil {
		return err
	}
	current, err := f.Stat()
	ours, statErr := t.file.Stat()
	if err = errors.Join(err, statErr); err == nil && os.SameFile(current, ours) {
		err = volume.PunchHole(f, from, to-from)
	}
	return errors.Join(err, f.Close())
}

// shipTail ships the end of a log that is over its limit, and counts the lines between the beginning and that end as dropped.
func (s *shipper) shipTail(ctx context.Context) error {
	c := s.pending.Cut
	if c.Lines == 0 || !hasRecords(s.stream.Kind) {
		return nil
	}
	reread := tail{volume: s.tail.volume, path: s.tail.path}
	defer reread.close()
	lines, bytes := int64(0), int64(0)
	if len(c.Marks) > 0 && c.Marks[0].From >= s.tail.base {
		m := c.Marks[0]
		reread.seek(s.tail.base, m.From)
		e := tailShipper{
			shipper: s, tail: &reread, afterSeq: m.After, remaining: c.Bytes - m.Bytes,
			tailBytes: tailOf(s.settings.MaxLog), end: s.tail.offset(),
			outs: lineJoiner{limit: s.settings.MaxLine}, errs: lineJoiner{limit: s.settings.MaxLine},
		}
		if err := e.ship(ctx); err != nil {
			return err
		}
		lines, bytes = e.lines, e.bytes
	}
	if n := c.Lines - lines; n > 0 {
		s.pending.Lines.drop(n, extract.LogLimitReason(s.settings.MaxLog, c.Bytes-bytes))
	}
	return nil
}

// tailShipper reads the end of the output once more, for its lines alone.
type tailShipper struct {
	shipper    *shipper
	tail       *tail
	outs, errs lineJoiner
	afterSeq   int64 // lines up to this one are skipped
	remaining  int64 // bytes of lines from here to the end
	tailBytes  int64 // how many of these bytes are shipped
	end        int64 // offset at which all ends

	lines, bytes int64 // that were shipped
}

func (e *tailShipper) ship(ctx context.Context) error {
	for e.tail.offset() < e.end {
		data, _, err := e.tail.next()
		if err != nil || len(data) == 0 {
			return err
		}
		before := e.tail.offset()
		if err := e.records(ctx, data); err != nil {
			return err
		}
		if e.tail.offset() == before && len(e.tail.rest) == len(e.tail.buf) {
			return nil // no entrypoint wrote this
		}
	}
	for i, j := range []*lineJoiner{&e.outs, &e.errs} {
		if j.length == 0 {
			continue
		}
		l := line{text: j.text, length: j.length, seq: e.end + 1 + int64(i)}
		if err := e.line(ctx, l, i == 1, j.last, true); err != nil {
			return err
		}
	}
	return nil
}

func (e *tailShipper) records(ctx context.Context, data []byte) error {
	for e.tail.offset() < e.end {
		at := e.tail.offset()
		r, n, err := pod.ReadRecord(data)
		if err != nil || n == 0 {
			return nil //nolint:nilerr // said when it was read first
		}
		j := &e.outs
		if r.Err {
			j = &e.errs
		}
		j.last = r.Time
		err = j.add(r.Data, at+pod.RecordHeader, at, func(l line) error { return e.line(ctx, l, r.Err, r.Time, false) })
		if err != nil {
			return err
		}
		data = data[n:]
		e.tail.used(n)
	}
	return nil
}

// line ships a line if it lies within the last tailBytes.
func (e *tailShipper) line(ctx context.Context, l line, isErr bool, at int64, open bool) error {
	if l.seq <= e.afterSeq {
		return nil
	}
	out := event.Line{Seq: l.seq, Stderr: isErr, Time: at, Unterminated: open}
	out.Text, out.Raw, out.Truncated = extract.LineText(l.text, l.length, e.shipper.settings.MaxLine)
	size := int64(len(out.Text)) + 1
	fits := e.remaining <= e.tailBytes
	e.remaining -= size
	if !fits {
		return nil
	}
	e.lines, e.bytes = e.lines+1, e.bytes+size
	return e.shipper.shipLine(ctx, out)
}
