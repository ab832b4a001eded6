package sink

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// logInterval is the least time between two log lines about rejected samples.
const logInterval = time.Minute

// rejectionLog logs rejected samples, at most once per logInterval.
type rejectionLog struct {
	now func() time.Time
	log *zap.Logger

	mu    sync.Mutex
	next  time.Time // when the next line may be logged
	count int       // rejected, and not logged yet
}

func newRejectionLog(now func() time.Time, log *zap.Logger) *rejectionLog {
	return &rejectionLog{now: now, log: log}
}

// warn logs a rejection, with the number of all that were not logged before.
func (s *rejectionLog) warn(r *RejectedError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count += r.Count
	now := s.now()
	if now.Before(s.next) {
		return
	}
	s.log.Warn("refused by a sink; the store has it", zap.Int("count", s.count), zap.Error(r.Cause))
	s.next, s.count = now.Add(logInterval), 0
}
