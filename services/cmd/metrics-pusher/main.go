// Command metrics-pusher brings samples and lines from their topics into the
// store. (What collects them in pods is bai-pod.)
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/benchmark-ai/bai/services/internal/config"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/run"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/metrics-pusher/index"
)

func main() {
	if err := realMain(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "metrics-pusher:", err)
		os.Exit(1)
	}
}

func realMain(ctx context.Context, args []string) (err error) {
	if len(args) == 0 || args[0] != "index" {
		return errors.New("usage: metrics-pusher index [--config FILE] (what runs in pods is bai-pod collect)")
	}
	flags := flag.NewFlagSet("metrics-pusher index", flag.ContinueOnError)
	path := flags.String("config", "/etc/bai/metrics-pusher.toml", "TOML `file` with the settings")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	var s settings
	if err := config.Load(*path, &s); err != nil {
		return err
	}
	log, err := s.Log.New(os.Stderr)
	if err != nil {
		return err
	}
	store, err := sqlite.Open(ctx, s.Store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	bus, err := kafka.NewBus(s.Kafka, log)
	if err != nil {
		return err
	}
	defer bus.Close()
	parts := index.New(s.Index, index.Deps{Bus: bus, Store: store})
	parts["health"] = run.Health(s.Health, map[string]run.Check{"kafka": bus.Ready})
	return run.UntilSignal(ctx, parts)
}
