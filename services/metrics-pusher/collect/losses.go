package collect

import "sync"

// losses are what never came to be in the file of a source, and why, until the
// source counts it. No losses at all are those of a source whose file nobody of
// ours writes. Any goroutine may add to them.
type losses struct {
	mu      sync.Mutex
	counts  map[string]int64 // by reason
	reasons []string         // in their order
}

// add notes that n are not in the file, and why.
func (l *losses) add(n int64, reason string) {
	const most = 20 // reasons
	if n <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.counts[reason]; !ok {
		if len(l.reasons) == most {
			reason = l.reasons[most-1]
		} else {
			l.reasons = append(l.reasons, reason)
		}
	}
	if l.counts == nil {
		l.counts = make(map[string]int64)
	}
	l.counts[reason] += n
}

// take hands over what was added since it was called last.
func (l *losses) take(count func(n int64, reason string)) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, reason := range l.reasons {
		count(l.counts[reason], reason)
	}
	l.counts, l.reasons = nil, nil
}
