package emit

import (
	"bytes"
	"context"
	"time"
)

// run writes what is emitted, until it is closed and all is written, or until ctx
// is done.
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
			_ = e.sink.close() // each write said what became of it
			return
		}
	}
}

// await waits until there is something to write, and then for more of it. It
// returns who waits for it to be written, if anybody, and whether it is all.
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

// writeAll takes what waits and writes it. It tries for as long as it takes, or
// until ctx is done; then what is left is dropped.
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

// take takes what waits, and lets those go on who wait for room.
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
