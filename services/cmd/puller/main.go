// Command puller downloads a run's data to the disk of its pod before the benchmark
// starts. The program bai-pod-ship can do that too; this program is for images that
// need nothing else.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/puller"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := pull(ctx, os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, "puller:", err)
	}
	os.Exit(puller.WriteTermination(os.Getenv(pod.EnvMessage), err))
}

func pull(ctx context.Context, env func(string) string) error {
	cfg, err := puller.Read(env(pod.EnvSecretDir))
	if err != nil {
		return err
	}
	publish, stop := newPublisher(ctx, cfg)
	defer stop()
	return puller.Run(ctx, env(pod.EnvDir), cfg, publish)
}

// newPublisher returns a function that publishes the progress. Progress is best effort:
// a broker that is down delays the puller only briefly, and causes no failure.
func newPublisher(ctx context.Context, cfg pod.Pull) (publish func(event.Status), stop func()) {
	if len(cfg.Brokers) == 0 {
		return nil, func() {}
	}
	bus, err := kafka.NewBus(kafka.InPod(cfg.Brokers, cfg.Access, cfg.Token, "puller"), zap.NewNop())
	if err != nil {
		return nil, func() {}
	}
	return func(s event.Status) {
		ctx, cancel := context.WithTimeout(ctx, puller.PublishTimeout)
		defer cancel()
		_ = bus.Publish(ctx, s) // best effort
	}, bus.Close
}
