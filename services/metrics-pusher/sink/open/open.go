// Package open opens the sinks that settings name.
package open

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/cloudwatch"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/folder"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/prometheus"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/webhook"
)

// Settings are those of each sink. One that is nil is off: all are by default.
type Settings struct {
	Prometheus *prometheus.Settings `toml:"prometheus"`
	Folder     *folder.Settings     `toml:"folder"`
	CloudWatch *cloudwatch.Settings `toml:"cloudwatch"`
	Webhook    *webhook.Settings    `toml:"webhook"`
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	if s.Prometheus != nil {
		errs = append(errs, s.Prometheus.Validate())
	}
	if s.Folder != nil {
		errs = append(errs, s.Folder.Validate())
	}
	if s.CloudWatch != nil {
		errs = append(errs, s.CloudWatch.Validate())
	}
	if s.Webhook != nil {
		errs = append(errs, s.Webhook.Validate())
	}
	return errors.Join(errs...)
}

// Runnables returns the runnables that fill the sinks in settings, and a function that closes the sinks once the runnables have ended. It
// does not wait for the places of the sinks.
func Runnables(ctx context.Context, s Settings, d sink.Deps) (map[string]service.Runnable, func() error, error) {
	parts := make(map[string]service.Runnable)
	var closers []func() error
	add := func(name string, to sink.Sink, err error) error {
		if err != nil {
			return fmt.Errorf("open sink %s: %w", name, err)
		}
		if c, ok := to.(interface{ Close() error }); ok {
			closers = append(closers, c.Close)
		}
		maps.Copy(parts, sink.New(name, to, d))
		return nil
	}
	var errs []error
	if s.Prometheus != nil {
		to, err := prometheus.New(*s.Prometheus)
		errs = append(errs, add("prometheus", to, err))
	}
	if s.Folder != nil {
		to, err := folder.New(*s.Folder)
		errs = append(errs, add("folder", to, err))
	}
	if s.CloudWatch != nil {
		to, err := cloudwatch.New(ctx, *s.CloudWatch, d.Now)
		errs = append(errs, add("cloudwatch", to, err))
	}
	if s.Webhook != nil {
		to, err := webhook.New(*s.Webhook, d.Now)
		errs = append(errs, add("webhook", to, err))
	}
	end := func() error {
		var errs []error
		for _, c := range closers {
			errs = append(errs, c())
		}
		return errors.Join(errs...)
	}
	return parts, end, errors.Join(errs...)
}
