//go:build linux

package entrypoint

import (
	"context"
	"os"
	"syscall"
	"time"
)

// maxSignals is how many signals may wait for the command to start.
const maxSignals = 16

// takeSignals takes signals until stop is called, and hands them on to the channel that it returns, as far as that has room. After the
// first one that asks to end, the output waits for the disk no longer than DiskTimeout and the grace.
func (w *runner) takeSignals(signals <-chan os.Signal) (forwarded <-chan os.Signal, stop func()) {
	to, done, ended := make(chan os.Signal, maxSignals), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case s := <-signals:
				w.takeSignal(s, to)
			}
		}
	}()
	return to, func() {
		close(done)
		<-ended
	}
}

func (w *runner) takeSignal(s os.Signal, to chan<- os.Signal) {
	if sig, _ := s.(syscall.Signal); forward(sig).kill {
		now := time.Now()
		w.out.stop(now.Add(w.settings.Grace), now.Add(min(w.settings.Grace, w.settings.DiskTimeout)))
	}
	select {
	case to <- s:
	default: // as package signal does
	}
}

// contextAfterStop returns a context that is done once the pod has to end and then so much time has passed as left returns. Cancel has to
// be called.
func (o *output) contextAfterStop(left func() time.Duration) (ctx context.Context, cancel func()) {
	ctx, done := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
			return
		case <-o.ending:
		}
		over := time.NewTimer(left())
		defer over.Stop()
		select {
		case <-ctx.Done():
		case <-over.C:
			done()
		}
	}()
	return ctx, func() {
		done()
		<-ended
	}
}
