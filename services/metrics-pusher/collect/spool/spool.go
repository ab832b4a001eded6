// Package spool stores samples that do not come as a file in a file until they are shipped.
package spool

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"sync"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/volume"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// Bounds of a spool's memory.
const (
	maxRecent = 1 << 16 // lines that are recognized
	maxReread = 16 << 20
)

// Spool is a file of samples that came over HTTP or a FIFO, in lines as client libraries write them. A stream ships the file. It survives
// the collector, and its offsets number the samples. A line that is among the last 65,536 of the file is not written again: a sample that
// is sent twice is stored once, even if the collector or the sender was killed in between.
type Spool struct {
	settings Settings
	series   *SeriesSet
	losses   *Losses

	mu          sync.Mutex
	file        *os.File
	size        int64
	partialLine bool // the last write was not whole
	recent      map[uint64]struct{}
	order       []uint64 // those of recent, as a ring
	next        int
}

// Settings are those of a spool.
type Settings struct {
	File  string       // name on the volume
	Key   string       // of the descriptor, to which reasons refer
	Limit int64        // bytes that the file may have; 0 is no limit
	Full  func() error // returns an error while the disk takes no more
}

// Open opens a spool for the samples of some series, and adds the samples that it does not store to lost. It reads the last lines of the
// file to recognize them. A line that a kill has cut off is removed: its sender got no answer.
func Open(v *volume.Volume, settings Settings, series *SeriesSet, lost *Losses) (*Spool, error) {
	s := &Spool{settings: settings, series: series, losses: lost, recent: make(map[uint64]struct{})}
	var err error
	if s.file, err = v.Open(settings.File, os.O_RDWR|os.O_APPEND|os.O_CREATE); err == nil {
		err = s.restore()
	}
	if err != nil {
		return nil, fmt.Errorf("open what samples are written to: %w", errors.Join(err, s.Close()))
	}
	return s, nil
}

// restore reads the end of the file.
func (s *Spool) restore() error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	s.size = info.Size()
	from := max(0, s.size-maxReread)
	text := make([]byte, s.size-from)
	if _, err := s.file.ReadAt(text, from); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if whole := bytes.LastIndexByte(text, '\n') + 1; whole < len(text) {
		s.size = from + int64(whole)
		text = text[:whole]
		if err := s.file.Truncate(s.size); err != nil {
			return err
		}
	}
	for line := range bytes.Lines(text) {
		s.remember(sum(line))
	}
	return nil
}

// Append stores samples, or fails and stores none that will be counted. It drops samples of too many series, and those beyond the limit.
// The caller does not use the samples again.
func (s *Spool) Append(samples []event.Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	samples, dropped := s.series.Admit(samples)
	s.losses.Add(int64(dropped), s.settings.Key+": "+s.series.TooMany())
	var text []byte
	fresh := make(map[uint64]struct{}, len(samples))
	for i := range samples {
		begin := len(text)
		text = extract.AppendLine(text, &samples[i])
		line := sum(text[begin:])
		_, old := s.recent[line]
		if _, twice := fresh[line]; old || twice {
			text = text[:begin]
			continue
		}
		if s.settings.Limit > 0 && s.size+int64(len(text)) > s.settings.Limit {
			text = text[:begin]
			s.losses.Add(1, overLimit(s.settings.Key, s.settings.Limit))
			continue
		}
		fresh[line] = struct{}{}
	}
	if err := s.write(text); err != nil {
		return err
	}
	for line := range fresh {
		s.remember(line)
	}
	return nil
}

// write appends text whole, or fails. The next call ends the partial line of a failed write, which is no sample.
func (s *Spool) write(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if s.file == nil {
		return os.ErrClosed
	}
	if s.partialLine {
		text = append([]byte("\n"), text...)
	}
	if err := s.settings.Full(); err != nil {
		return err
	}
	n, err := s.file.Write(text)
	s.size += int64(n)
	s.partialLine = err != nil && (s.partialLine && n == 0 || n > 0)
	return err
}

// remember adds a line to the recognized ones, and removes the oldest if there are too many.
func (s *Spool) remember(line uint64) {
	if _, ok := s.recent[line]; ok {
		return
	}
	if len(s.order) < maxRecent {
		s.order = append(s.order, line)
	} else {
		delete(s.recent, s.order[s.next])
		s.order[s.next] = line
		s.next = (s.next + 1) % maxRecent
	}
	s.recent[line] = struct{}{}
}

func sum(b []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(b) // it never fails
	return h.Sum64()
}

// Drop counts n samples that are not stored, with the reason.
func (s *Spool) Drop(n int64, reason string) { s.losses.Add(n, reason) }

// Close closes the file. Later samples are not stored.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
