//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/test/ci/gotest"
)

// watch reads the events of tests, logs them, and ends tests that hang.
type watch struct {
	check *check
	limit time.Duration

	mu       sync.Mutex
	log      *os.File
	reader   gotest.Reader
	hung     []gotest.Overdue
	quitSent map[string]bool
}

// Write implements io.Writer.
func (w *watch) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.reader.Write(b) // never fails
	return w.log.Write(b)
}

// start looks for tests that hang until stop is called.
func (w *watch) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				w.quitOverdue(now)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// quitOverdue ends the test binaries of tests that run for longer than they may.
func (w *watch) quitOverdue(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.reader.Overdue(now.Add(-w.limit)) {
		if !w.quitSent[o.Package] {
			w.quitSent[o.Package] = true
			_ = w.check.folder.Quit(o.Package) // it may just have ended
		}
		if !slices.Contains(w.hung, o) {
			w.hung = append(w.hung, o)
		}
	}
}

// report is that of the tests, in which those that hung say so.
func (w *watch) report() gotest.Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.reader.Report()
	for i, f := range r.Failures {
		for _, o := range w.hung {
			if o.Package == f.Package && o.Test == f.Test {
				r.Failures[i].Why = append([]string{fmt.Sprintf("hung: it ran for more than %s", w.limit)}, f.Why...)
			}
		}
	}
	return r
}
