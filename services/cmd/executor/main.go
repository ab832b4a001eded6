// Command executor gives each run its turn, and launches it once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/benchmark-ai/bai/services/cmd/internal/pods"
	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/cluster/local"
	"github.com/benchmark-ai/bai/services/internal/config"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/run"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

func main() {
	if err := realMain(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "executor:", err)
		os.Exit(1)
	}
}

func realMain(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("executor", flag.ContinueOnError)
	path := flags.String("config", "/etc/bai/executor.toml", "TOML `file` with the settings")
	if err := flags.Parse(args); err != nil {
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
	c, err := pods.Open(s.Kubernetes, local.Settings{Dir: s.Cluster.Dir, PodBinary: s.Cluster.PodBinary, Secrets: s.Cluster.Secrets, Log: log}, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	parts := executor.New(s.executor(), executor.Deps{Bus: bus, Store: store, Cluster: c, Token: bus.Token, Log: log})
	parts["health"] = run.Health(s.Health, map[string]run.Check{"kafka": bus.Ready, "cluster": c.Ready})
	return run.UntilSignal(ctx, parts)
}
