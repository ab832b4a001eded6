// Package run is the life of a process: start its parts, wait for the first to
// end or for a signal, and stop the rest.
package run

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/benchmark-ai/bai/services/internal/service"
)

// Signals are the signals that end a process: an operator's, and the one of its closed
// terminal, unless the process ignores it since its start (nohup).
func Signals() []os.Signal {
	all := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// UntilSignal runs the named runnables until one of them ends or a signal arrives, and
// returns when all have ended. It returns the first error, or nil after a signal. A
// second signal ends the process at once.
func UntilSignal(ctx context.Context, parts map[string]service.Runnable) error {
	ctx, stop := signal.NotifyContext(ctx, Signals()...)
	defer stop()
	context.AfterFunc(ctx, stop)
	return All(ctx, parts)
}

// All runs the named parts until one of them ends or ctx is done, and returns
// when all have ended, with the first error.
func All(ctx context.Context, parts map[string]service.Runnable) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	var g errgroup.Group
	for name, part := range parts {
		g.Go(func() error {
			defer cancel()
			if err := part(ctx); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	return g.Wait()
}
