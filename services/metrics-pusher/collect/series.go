package collect

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
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// seriesRegistry are those of a pod, whatever they come by, in memory and in a file, so
// that whoever goes on after a kill keeps those that were kept before. Any
// goroutine may ask them.
type seriesRegistry struct {
	volume *volume
	log    *zap.Logger

	mu          sync.Mutex
	limiter     extract.SeriesLimiter
	writeFailed bool // that the file cannot be written
}

// idSize is how many bytes a series takes in the file.
const idSize = 8

// load has it know those of the file, or removes the file where anew is set.
func (s *seriesRegistry) load(reset bool) error {
	if reset {
		if err := s.volume.root.Remove(pod.Series); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget another run's series: %w", err)
		}
		return nil
	}
	b, err := s.volume.read(pod.Series, 2*idSize*extract.MaxSeries) // more than any pod has
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read which series are kept: %w", err)
	}
	for id := range slices.Chunk(b[:min(len(b)/idSize, extract.MaxSeries)*idSize], idSize) {
		s.limiter.Add(binary.LittleEndian.Uint64(id))
	}
	return nil
}

// admit returns those of samples that are of series that are kept, in the same
// memory, and how many are not. Of what it returns the file knows.
func (s *seriesRegistry) admit(samples []event.Sample) (admitted []event.Sample, dropped int) {
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

// tooMany says why samples are dropped.
func (s *seriesRegistry) tooMany() string { return s.limiter.TooMany() } // what it reads never changes

// write appends series to the file. A disk that is full is no reason to stop: then
// others may be kept after a kill.
func (s *seriesRegistry) write(fresh []uint64) {
	if len(fresh) == 0 {
		return
	}
	b := make([]byte, 0, len(fresh)*idSize)
	for _, id := range fresh {
		b = binary.LittleEndian.AppendUint64(b, id)
	}
	f, err := s.volume.open(pod.Series, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	if err == nil {
		_, err = f.Write(b)
		err = errors.Join(err, f.Close())
	}
	if err != nil && !s.writeFailed {
		s.log.Warn("which series are kept cannot be written", zap.Error(err))
		s.writeFailed = true
	}
}
