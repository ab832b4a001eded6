package sink

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// quiet is how long nothing more is said of what is refused.
const quiet = time.Minute

// said says what is refused, but not each time.
type said struct {
	now func() time.Time
	log *zap.Logger

	mu    sync.Mutex
	next  time.Time // when something may be said
	count int       // refused, and not said
}

func newSaid(now func() time.Time, log *zap.Logger) *said { return &said{now: now, log: log} }

// refused says that something was refused, with all that was not said before.
func (s *said) refused(r *RefusedError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count += r.Count
	now := s.now()
	if now.Before(s.next) {
		return
	}
	s.log.Warn("refused by a sink; the store has it", zap.Int("count", s.count), zap.Error(r.Why))
	s.next, s.count = now.Add(quiet), 0
}
