// Command baictl is the command line of the platform: it checks descriptors, submits
// runs, follows them and shows their results.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verb"
)

var version string // set by the linker

func main() {
	env := verb.Env{
		In:         os.Stdin,
		Out:        os.Stdout,
		Err:        os.Stderr,
		Getenv:     os.Getenv,
		Version:    version,
		Interrupts: interrupts,
	}
	os.Exit(verb.Main(context.Background(), env, os.Args[1:]))
}

// interrupts ends a context with a cause at the first signal. The second one
// ends the process.
func interrupts(ctx context.Context, cause error) (context.Context, context.CancelFunc) {
	signals := make(chan os.Signal, 1)
	if !signal.Ignored(os.Interrupt) { // as it is for a shell's background jobs
		signal.Notify(signals, os.Interrupt)
	}
	signal.Notify(signals, syscall.SIGTERM)
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-signals:
			signal.Stop(signals)
			cancel(cause)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel(nil) }
}
