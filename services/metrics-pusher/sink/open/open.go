// Package open opens the sinks that settings name.
package open

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

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

// entry is one sink that can be in settings.
type entry struct {
	name     string
	isOn     bool
	validate func() error
	open     func() (sink.Sink, error)
}

// entryOf is the sink with the settings s, which are nil if it is off.
func entryOf[S interface{ Validate() error }, T sink.Sink](name string, s *S, open func(S) (T, error)) entry {
	return entry{
		name: name, isOn: s != nil,
		validate: func() error { return (*s).Validate() },
		open:     func() (sink.Sink, error) { return open(*s) },
	}
}

// sinks returns an entry for each field of s.
func sinks(ctx context.Context, s Settings, now func() time.Time) []entry {
	return []entry{
		entryOf("prometheus", s.Prometheus, prometheus.New),
		entryOf("folder", s.Folder, folder.New),
		entryOf("cloudwatch", s.CloudWatch, func(c cloudwatch.Settings) (*cloudwatch.Sink, error) { return cloudwatch.New(ctx, c, now) }),
		entryOf("webhook", s.Webhook, func(w webhook.Settings) (*webhook.Sink, error) { return webhook.New(w, now) }),
	}
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	for _, e := range sinks(context.Background(), s, nil) {
		if e.isOn {
			errs = append(errs, e.validate())
		}
	}
	return errors.Join(errs...)
}

// Runnables returns the runnables that fill the sinks in settings, and a function that closes the sinks once the runnables have ended. It
// does not wait for the places of the sinks.
func Runnables(ctx context.Context, s Settings, d sink.Deps) (map[string]service.Runnable, func() error, error) {
	parts := make(map[string]service.Runnable)
	var closers []func() error
	var errs []error
	for _, e := range sinks(ctx, s, d.Now) {
		if !e.isOn {
			continue
		}
		to, err := e.open()
		if err != nil {
			errs = append(errs, fmt.Errorf("open sink %s: %w", e.name, err))
			continue
		}
		if c, ok := to.(io.Closer); ok {
			closers = append(closers, c.Close)
		}
		maps.Copy(parts, sink.New(e.name, to, d))
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
