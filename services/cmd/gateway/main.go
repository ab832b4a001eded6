// Command gateway takes runs in, keeps what is known of each, and answers for
// them.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"

	"github.com/benchmark-ai/bai/proto"
	"github.com/benchmark-ai/bai/services/cmd/internal/wiring"
	"github.com/benchmark-ai/bai/services/gateway"
	"github.com/benchmark-ai/bai/services/gateway/api"
	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/config"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/run"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

// version is set when the program is built.
var version = "unknown"

func main() {
	if err := realMain(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

func realMain(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	path := flags.String("config", "/etc/bai/gateway.toml", "TOML `file` with the settings")
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
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cmp.Or(s.Listen, "127.0.0.1:7070"))
	if err != nil {
		return fmt.Errorf("listen for users: %w", err)
	}
	deps := gateway.Deps{
		Bus: bus, Store: store, Listener: l, Renderer: wiring.NewRenderer(s.Executor), Token: bus.Token, OpenAPI: proto.OpenAPI(),
		Entropy: rand.Reader, Ready: bus.Ready, Version: api.Version{Version: version}, Log: log,
	}
	closeOthers, err := others(ctx, s, &deps)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeOthers()) }()
	parts := gateway.New(s.Gateway, deps)
	parts["health"] = run.Health(s.Health, map[string]run.Check{"kafka": bus.Ready})
	return run.UntilSignal(ctx, parts)
}

// others opens what lies elsewhere: sources of descriptors, and the object store,
// where there is one. It returns what closes them.
func others(ctx context.Context, s settings, deps *gateway.Deps) (func() error, error) {
	source, err := wiring.NewSource(s.Fetcher.Sources, s.Buckets)
	if err != nil {
		return nil, err
	}
	deps.Source = source
	if s.Objects.URL == "" {
		return func() error { source.Close(); return nil }, nil
	}
	objects, err := blob.Open(ctx, s.Objects)
	if err != nil {
		source.Close()
		return nil, err
	}
	deps.Objects = objects
	return func() error { source.Close(); return objects.Close() }, nil
}
