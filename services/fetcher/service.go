package fetcher

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/fetcher/download"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// Bus carries events.
type Bus interface {
	// Consume returns the runnable that passes events to step, and publishes the events
	// that step returns. Runnables of one group share the events.
	Consume(group string, step service.Step) service.Runnable
	// Publish publishes events outside the handling of an event.
	Publish(ctx context.Context, events ...event.Event) error
}

// Deps are the dependencies of the service.
type Deps struct {
	Dataset dataset.Deps

	Bus         Bus
	Jobs        download.Jobs // cluster for download Jobs; nil: this process downloads
	JobTemplate *batchv1.Job  // template of the Jobs (see download.CheckJob); required with Jobs
}

// downloader downloads a source into the object store, as download.Downloader does.
type downloader interface {
	Download(ctx context.Context, r download.Request) error
	LeaseName(key string) string
}

// New returns the runnables of the service, by name. The names are unique among all
// services, so one process can run several services.
func New(s dataset.Settings, d Deps) (map[string]service.Runnable, error) {
	cache, err := dataset.New(s, d.Dataset)
	if err != nil {
		return nil, err
	}
	f := newFetcher(s.OrDefault(), d, cache)
	p := &pass{fetcher: f, slots: make(chan struct{}, f.settings.Downloads)}
	f.loop = control.NewLoop("fetcher/orders", f.settings.PollInterval, d.Dataset.Log, p.run, control.LoopSettings{
		Backoff: control.Backoff{First: time.Second, Max: maxBackoff}, Failing: "orders wait", Working: "orders go on",
	})
	return map[string]service.Runnable{
		"fetcher/submitted": d.Bus.Consume("fetcher", service.On(f.handleSubmitted)),
		"fetcher/commands":  d.Bus.Consume("fetcher", service.On(f.handleCommand)),
		"fetcher/orders":    p.runOrders,
		"fetcher/sweep":     f.runSweep,
	}, nil
}
