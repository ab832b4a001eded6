//go:build linux

// Bai-pod-ship is the platform's program in a benchmark's pod that connects to brokers
// and object stores: it pulls data sets, collects what the benchmark writes, and waits for
// other pods. It is a separate program because its packages take longer to start, and
// every benchmark waits for the start of bai-pod.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"syscall"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/sockets/dial"
	"github.com/benchmark-ai/bai/services/internal/pod/waitready"
	"github.com/benchmark-ai/bai/services/internal/run"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect"
	"github.com/benchmark-ai/bai/services/puller"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code, err := ship(ctx, os.Args[1:])
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bai-pod:", err)
		code = 1
	}
	os.Exit(code)
}

// ship carries out the command line, and returns the exit code.
func ship(ctx context.Context, args []string) (int, error) {
	switch {
	case len(args) == 1 && args[0] == "collect":
		return 0, runCollect(ctx)
	case len(args) == 1 && args[0] == "pull":
		return runPull(ctx)
	case len(args) > 1 && args[0] == "await":
		return 0, runAwait(ctx, args[1:])
	}
	return 0, errors.New("usage: bai-pod-ship collect, bai-pod-ship pull, or bai-pod-ship await [OPTION…] URL…")
}

// runCollect ships the output of the benchmark until the benchmark has ended and
// everything is shipped.
func runCollect(ctx context.Context) error {
	if os.Getenv("GOGC") == "" { // a small heap: collect rarely, within the memory of a sidecar
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(44 << 20)
	}
	s := collect.Settings{
		Dir: os.Getenv(pod.EnvDir), StateDir: os.Getenv(pod.EnvStateDir), Pod: os.Getenv(pod.EnvPodUID),
		Node: os.Getenv(pod.EnvNode),
	}
	if err := readSecretFile(pod.CollectFile, &s.Collect); err != nil {
		return err
	}
	var err error
	if s.Index, err = podIndex(); err != nil {
		return err
	}
	if number := os.Getenv(pod.EnvSockets); number != "" {
		if s.Net, err = dial.Open(number); err != nil {
			return fmt.Errorf("%s: %w", pod.EnvSockets, err)
		}
	}
	bus, log, err := openBus(s.Brokers, s.Access, s.Token, "collect")
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

// podIndex returns the pod's number within its role.
func podIndex() (int, error) {
	text := os.Getenv(pod.EnvIndex)
	if text == "" {
		return 0, nil
	}
	index, err := strconv.Atoi(text)
	if err != nil || index < 0 {
		return 0, fmt.Errorf("%s: %q is no number of a pod", pod.EnvIndex, text)
	}
	return index, nil
}

// runAwait waits until other pods are ready.
func runAwait(ctx context.Context, args []string) error {
	s, err := waitready.Parse(args)
	if err != nil {
		return err
	}
	return waitready.Run(ctx, s)
}

// runPull downloads the data, and returns the exit code for the result.
func runPull(ctx context.Context) (int, error) {
	cfg, err := puller.Read(os.Getenv(pod.EnvSecretDir))
	if err == nil {
		cfg.Linked = os.Getenv(pod.EnvDir) == "" // in Kubernetes the benchmark sees the data through mounts
		cfg.Index, err = podIndex()
	}
	if err == nil {
		err = pull(ctx, cfg)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bai-pod: pull:", err) // the termination message has the error too
	}
	return puller.WriteTermination(os.Getenv(pod.EnvMessage), err), nil
}

func pull(ctx context.Context, cfg pod.Pull) error {
	var publish func(event.Status)
	if len(cfg.Brokers) > 0 {
		bus, _, err := openBus(cfg.Brokers, cfg.Access, cfg.Token, "pull")
		if err != nil {
			return err
		}
		defer bus.Close()
		publish = func(s event.Status) {
			ctx, cancel := context.WithTimeout(ctx, puller.PublishTimeout)
			defer cancel()
			_ = bus.Publish(ctx, s) // progress is best effort
		}
	}
	return puller.Run(ctx, os.Getenv(pod.EnvDir), cfg, publish)
}

// openBus returns a bus with the token of the pod's run, and a log.
func openBus(brokers []string, access pod.Access, token, source string) (*kafka.Bus, *zap.Logger, error) {
	log, err := run.Log{}.New(os.Stderr)
	if err != nil {
		return nil, nil, err
	}
	b, err := kafka.NewBus(kafka.InPod(brokers, access, token, source), log)
	return b, log, err
}

// readSecretFile reads a file of the pod's Secret.
func readSecretFile(name string, into any) error {
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
