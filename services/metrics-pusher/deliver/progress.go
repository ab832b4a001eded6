package deliver

import (
	"context"
	"iter"
	"time"
)

// maxSilence is how long a destination may take for one row, and before the first row and after the last.
const maxSilence = 10 * time.Minute

// withProgress returns a context that is canceled once onRow was not called for limit. So a delivery of many rows may last as long as it
// needs. The caller calls stop when the delivery is over.
func withProgress(ctx context.Context, limit time.Duration) (_ context.Context, onRow, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(limit, cancel)
	return ctx, func() { timer.Reset(limit) }, func() {
		timer.Stop()
		cancel()
	}
}

// counted returns rows, and calls onRow after each that was taken.
func counted(rows iter.Seq2[[]any, error], onRow func()) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for row, err := range rows {
			if !yield(row, err) {
				return
			}
			onRow()
		}
	}
}
