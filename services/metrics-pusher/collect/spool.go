package collect

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"sync"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// Bounds of what a spool remembers.
const (
	maxRecent = 1 << 16 // lines that are known again
	maxReread = 16 << 20
)

// spool is a file of samples that did not come as one, in lines as client
// libraries write them, which a source ships: it survives the collector, and its
// bytes number the samples. A line that it has already, among the last 65,536, is
// not written again: what is sent twice is there once, whoever was killed between.
type spool struct {
	key    string // of the descriptor, to which reasons refer
	limit  int64  // bytes that it may have; 0 is no limit
	series *seriesRegistry
	losses *losses
	disk   *diskMonitor

	mu          sync.Mutex
	file        *os.File
	size        int64
	partialLine bool // the last write was not whole
	recent      map[uint64]struct{}
	order       []uint64 // those of recent, as a ring
	next        int
}

// openSpool opens a spool that keeps some series, and tells what it does not keep.
// What it holds already is known again. A line that a kill tore is removed: nobody
// was told that it is safe.
func openSpool(v *volume, name, key string, limit int64, registry *seriesRegistry, lost *losses, r *diskMonitor) (*spool, error) {
	s := &spool{disk: r, key: key, limit: limit, series: registry, losses: lost, recent: make(map[uint64]struct{})}
	var err error
	if s.file, err = v.open(name, os.O_RDWR|os.O_APPEND|os.O_CREATE); err == nil {
		err = s.restore()
	}
	if err != nil {
		return nil, fmt.Errorf("open what samples are written to: %w", errors.Join(err, s.close()))
	}
	return s, nil
}

// restore reads the end of the file.
func (s *spool) restore() error {
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

// Append keeps samples, or fails and keeps none that will be counted as such. Those
// of too many series, and those that are beyond the limit, are dropped. What it
// was given is not to be used again.
func (s *spool) Append(samples []event.Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	samples, dropped := s.series.admit(samples)
	s.losses.add(int64(dropped), s.key+": "+s.series.tooMany())
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
		if s.limit > 0 && s.size+int64(len(text)) > s.limit {
			text = text[:begin]
			s.losses.add(1, overSpool(s.key, s.limit))
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

// write appends text whole, or fails. What a failure has left of it is ended with
// the next, and is a line that holds no sample.
func (s *spool) write(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if s.file == nil {
		return os.ErrClosed
	}
	if s.partialLine {
		text = append([]byte("\n"), text...)
	}
	if err := s.disk.checkFull(); err != nil {
		return err
	}
	n, err := s.file.Write(text)
	s.size += int64(n)
	s.partialLine = err != nil && (s.partialLine && n == 0 || n > 0)
	return err
}

// remember remembers a line, and forgets the oldest where there are too many.
func (s *spool) remember(line uint64) {
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

// Drop notes that n samples are not kept, and why.
func (s *spool) Drop(n int64, reason string) { s.losses.add(n, reason) }

func (s *spool) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
