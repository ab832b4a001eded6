// Command fetcher brings the data of each submitted run into the object store.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/benchmark-ai/bai/services/fetcher"
	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/blob/bucket"
	"github.com/benchmark-ai/bai/services/internal/git"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/run"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

func main() {
	if err := realMain(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fetcher:", err)
		os.Exit(1)
	}
}

func realMain(ctx context.Context, args []string) (err error) {
	s, err := load(args)
	if err != nil {
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
	objects, err := blob.Open(ctx, s.Objects)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, objects.Close()) }()
	bus, err := kafka.NewBus(s.Kafka, log)
	if err != nil {
		return err
	}
	defer bus.Close()
	buckets, err := bucket.New(s.Buckets)
	if err != nil {
		return err
	}
	parts, err := fetcher.New(s.Fetcher, fetcher.Deps{
		Bus: bus, Store: store, Objects: objects, Log: log,
		Buckets: fetcher.OpenBuckets(buckets), Repositories: fetcher.OpenRepositories(git.Opener{}),
	})
	if err != nil {
		return err
	}
	parts["health"] = run.Health(s.Health, map[string]run.Check{"kafka": bus.Ready, "store": store.Check})
	return run.UntilSignal(ctx, parts)
}
