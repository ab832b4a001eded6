package sink

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// logInterval is how long nothing more is said of what is refused.
const logInterval = time.Minute

// rejectionLog says what is refused, but not each time.
type rejectionLog struct {
	now func() time.Time
	log *zap.Logger

	mu    sync.Mutex
	next  time.Time // when something may be said
	count int       // refused, and not said
}

func newRejectionLog(now func() time.Time, log *zap.Logger) *rejectionLog {
	return &rejectionLog{now: now, log: log}
}

// warn says that something was refused, with all that was not said before.
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
