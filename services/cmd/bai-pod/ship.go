//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/pod"
	process "github.com/benchmark-ai/bai/services/internal/run"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect"
	"github.com/benchmark-ai/bai/services/puller"
)

// collected ships what the benchmark writes until it has ended and all is
// shipped.
func collected(ctx context.Context) error {
	s := collect.Settings{Dir: os.Getenv(pod.EnvDir), Pod: os.Getenv(pod.EnvPodUID)}
	if err := told(pod.CollectFile, &s.Collect); err != nil {
		return err
	}
	bus, log, err := bus(s.Brokers, s.Token, "collect")
	if err != nil {
		return err
	}
	defer bus.Close()
	c, err := collect.New(s, bus, log)
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// pulled brings the data, and returns the exit code that says how that ended.
func pulled(ctx context.Context) (int, error) {
	cfg, err := puller.Read(os.Getenv(pod.EnvSecretDir))
	if err == nil {
		err = pull(ctx, cfg)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bai-pod: pull:", err) // the last words say it too
	}
	return puller.End(os.Getenv(pod.EnvMessage), err), nil
}

func pull(ctx context.Context, cfg pod.Pull) error {
	var say func(event.Status)
	if len(cfg.Brokers) > 0 {
		bus, _, err := bus(cfg.Brokers, cfg.Token, "pull")
		if err != nil {
			return err
		}
		defer bus.Close()
		say = func(s event.Status) {
			ctx, cancel := context.WithTimeout(ctx, puller.Patience)
			defer cancel()
			_ = bus.Publish(ctx, s) // progress is told as far as it can be
		}
	}
	return puller.Run(ctx, os.Getenv(pod.EnvDir), cfg, say)
}

// bus returns what the pod speaks through, with its run's token.
func bus(brokers []string, token, source string) (*kafka.Bus, *zap.Logger, error) {
	log, err := process.Log{}.New(os.Stderr)
	if err != nil {
		return nil, nil, err
	}
	b, err := kafka.NewBus(kafka.Settings{Brokers: brokers, Token: token, Source: source}, log)
	return b, log, err
}

// told reads what the pod's Secret says.
func told(name string, into any) error {
	dir := os.Getenv(pod.EnvSecretDir)
	if dir == "" {
		dir = pod.SecretDir
	}
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return fmt.Errorf("read what the pod is told: %w", err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("read what the pod is told: %s: %w", name, err)
	}
	return nil
}

// untilSignal returns a context that ends with the first signal that asks a
// program to end.
func untilSignal(signals <-chan os.Signal) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for s := range signals {
			if s == syscall.SIGTERM || s == syscall.SIGINT {
				cancel()
			}
		}
	}()
	return ctx
}
