package emit

import (
	"bytes"
	"context"
	"time"
)

// run writes lines until the emitter is closed and all are written, or until ctx is done.
func (e *Emitter) run(ctx context.Context) {
	defer close(e.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		flushed, closing := e.await(timer)
		e.writeAll(ctx)
		if flushed != nil {
			close(flushed)
		}
		if closing {
			_ = e.sink.close() // each write reported its own errors
			return
		}
	}
}

// await waits for lines, and then for more of them. It returns the channel of a waiting
// flush, if any, and whether the emitter is closing.
func (e *Emitter) await(timer *time.Timer) (flushed chan struct{}, closing bool) {
	select {
	case <-e.wake:
	case flushed = <-e.flushes:
		return flushed, false
	case <-e.closing:
		return nil, true
	}
	timer.Reset(e.settings.Every)
	select {
	case <-timer.C:
	case <-e.full:
	case flushed = <-e.flushes:
	case <-e.closing:
		return nil, true
	}
	return flushed, false
}

// writeAll writes the buffered lines. It retries until ctx is done; then the rest is
// dropped.
func (e *Emitter) writeAll(ctx context.Context) {
	batch := e.take()
	var waited, before time.Duration
	reported := false
	for rest := batch; len(rest) > 0; {
		var err error
		if rest, err = e.sink.write(ctx, rest); err == nil {
			break
		}
		if waited >= e.sink.wait && !reported {
			reported = true
			e.warnf("%v: what is emitted waits", err)
		}
		before = pause(before)
		waited += before
		if !sleep(ctx, before) {
			e.mu.Lock()
			e.drop(int64(bytes.Count(rest, []byte{'\n'})), err)
			e.mu.Unlock()
			break
		}
	}
	e.mu.Lock()
	e.freeBuf = batch[:0]
	e.mu.Unlock()
}

// take takes the buffered lines, and wakes the calls that wait for room.
func (e *Emitter) take() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	batch := e.buf
	e.buf, e.freeBuf = e.freeBuf[:0], nil
	e.stalled = false
	if e.freed != nil {
		close(e.freed)
		e.freed = nil
	}
	return batch
}

// sleep sleeps for d, and reports whether ctx was not done before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
