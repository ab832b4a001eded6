package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/volume"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// SeriesSet is the set of the series of a pod, from all its streams, in memory and in a file, so that a collector that follows a killed one
// stores the same series. Any goroutine may use it.
type SeriesSet struct {
	volume *volume.Volume
	log    *zap.Logger

	mu          sync.Mutex
	limiter     extract.SeriesLimiter
	writeFailed bool // that the file cannot be written
}

// idSize is how many bytes a series takes in the file.
const idSize = 8

// NewSeriesSet returns a set of up to most series.
func NewSeriesSet(most int, log *zap.Logger) *SeriesSet {
	return &SeriesSet{log: log, limiter: extract.SeriesLimiter{Max: most}}
}

// Load reads the series of the file on a volume, or removes the file if reset is set.
func (s *SeriesSet) Load(v *volume.Volume, reset bool) error {
	s.volume = v
	if reset {
		if err := s.volume.Root.Remove(pod.Series); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget another run's series: %w", err)
		}
		return nil
	}
	b, err := s.volume.Read(pod.Series, 2*idSize*extract.MaxSeries) // more than any pod has
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read which series are kept: %w", err)
	}
	for id := range slices.Chunk(b[:min(len(b)/idSize, extract.MaxSeries)*idSize], idSize) {
		s.limiter.Add(binary.LittleEndian.Uint64(id))
	}
	return nil
}

// Admit returns the samples of stored series, in the same memory, and the number of other samples. It stores the series of the samples that
// it returns.
func (s *SeriesSet) Admit(samples []event.Sample) (admitted []event.Sample, dropped int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	admitted = samples[:0]
	for i := range samples {
		if !s.limiter.Admit(&samples[i]) {
			continue
		}
		if len(admitted) < i {
			samples[len(admitted)] = samples[i]
		}
		admitted = samples[:len(admitted)+1]
	}
	s.write(s.limiter.TakeAdmitted())
	return admitted, len(samples) - len(admitted)
}

// TooMany returns the reason for which samples are dropped.
func (s *SeriesSet) TooMany() string { return s.limiter.TooMany() } // it reads only fields that never change

// write appends series to the file. If the disk is full it does not fail: other series may be stored after a kill then.
func (s *SeriesSet) write(fresh []uint64) {
	if len(fresh) == 0 {
		return
	}
	b := make([]byte, 0, len(fresh)*idSize)
	for _, id := range fresh {
		b = binary.LittleEndian.AppendUint64(b, id)
	}
	f, err := s.volume.Open(pod.Series, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	if err == nil {
		_, err = f.Write(b)
		err = errors.Join(err, f.Close())
	}
	if err != nil && !s.writeFailed {
		s.log.Warn("which series are kept cannot be written", zap.Error(err))
		s.writeFailed = true
	}
}
