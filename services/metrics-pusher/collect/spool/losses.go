package spool

import "sync"

// Losses counts the samples and lines that never reached the file of a stream, with the reasons, until the stream takes the counts. It is
// nil for a stream whose file the collector does not write. Any goroutine may use it.
type Losses struct {
	mu      sync.Mutex
	counts  map[string]int64 // by reason
	reasons []string         // in their order
}

// Add counts n lines or samples that are not in the file, with the reason.
func (l *Losses) Add(n int64, reason string) {
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

// Take calls count with the counts since its last call.
func (l *Losses) Take(count func(n int64, reason string)) {
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
