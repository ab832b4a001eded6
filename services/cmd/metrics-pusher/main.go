// Command metrics-pusher stores samples and lines from their topics, summarises them,
// and copies them to the sinks in the settings. The collector in pods is bai-pod.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/benchmark-ai/bai/descriptors/price"
	"github.com/benchmark-ai/bai/services/cmd/internal/program"
	"github.com/benchmark-ai/bai/services/internal/blob/bucket"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver"
	destinations "github.com/benchmark-ai/bai/services/metrics-pusher/deliver/open"
	"github.com/benchmark-ai/bai/services/metrics-pusher/index"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/open"
	"github.com/benchmark-ai/bai/services/metrics-pusher/summarise"
)

func main() {
	if err := realMain(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "metrics-pusher:", err)
		os.Exit(1)
	}
}

func realMain(ctx context.Context, args []string) error {
	if len(args) == 0 || args[0] != "index" {
		return errors.New("usage: metrics-pusher index [--config FILE] (what runs in pods is bai-pod-ship collect)")
	}
	return program.Run(ctx, "metrics-pusher", args[1:], &settings{})
}

type settings struct {
	program.Settings

	Index     index.Settings `toml:"metrics-pusher"`
	Summaries summarise.Settings
	// of machines: money per hour by instance type, such as "p3.2xlarge" = "3.06 USD"; without one of its machines, a run has no cost
	Prices price.Table
	Sinks  open.Settings

	Destinations destinations.Settings // places for results beside the store, which descriptors name
	Buckets      bucket.Settings       // access to buckets of destinations
}

// Validate implements config.Validator.
func (s *settings) Validate() error {
	return errors.Join(s.Settings.Validate(), s.Index.Validate(), s.Summaries.Validate(), s.Prices.Validate(), s.Sinks.Validate(),
		s.Destinations.Validate(), s.Buckets.Validate())
}

// Parts implements program.Service.
func (s *settings) Parts(ctx context.Context, c *program.Common) (map[string]service.Runnable, error) {
	parts := index.New(s.Index, index.Deps{Bus: c.Bus, Store: c.Store})
	buckets, err := bucket.New(s.Buckets)
	if err != nil {
		return parts, err
	}
	places, closePlaces, err := destinations.Destinations(ctx, s.Destinations, buckets, c.Log)
	c.OnClose(closePlaces)
	if err != nil {
		return parts, err
	}
	deliverer := deliver.New(deliver.Deps{
		Store: c.Store, Destinations: places,
		Namespaces: s.Destinations.Namespaces(), Now: time.Now, Log: c.Log,
	})
	maps.Copy(parts, deliverer.Runnables())
	maps.Copy(parts, summarise.New(s.Summaries,
		summarise.Deps{Bus: c.Bus, Store: c.Store, Prices: s.Prices, Summarised: deliverer.Owe, Now: time.Now, Log: c.Log}))
	sinks, end, err := open.Runnables(ctx, s.Sinks, sink.Deps{Bus: c.Bus, Meter: c.Meter(), Now: time.Now, Log: c.Log})
	c.OnClose(end)
	maps.Copy(parts, sinks)
	return parts, err
}
