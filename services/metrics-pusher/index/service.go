// Package index stores the samples and lines that pods have shipped.
//
// The service commits a message to the brokers only after all of it is stored, and a message that comes twice is stored once. While the
// store is away all messages wait, in order. Only data that the store will never take become a dead letter.
package index

import (
	"cmp"
	"context"
	"errors"

	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are what an operator may choose. The zero value works.
type Settings struct {
	Batch int `toml:"batch"` // messages that are stored at once, at most; zero means 64
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	if s.Batch < 0 {
		return errors.New("metrics-pusher.batch: must not be negative")
	}
	return nil
}

// Bus carries events.
type Bus interface {
	// Consume returns a runnable that passes the events of a group to step, and publishes the events that step returns. Runnables of one
	// group share the events.
	Consume(group string, step service.Step) service.Runnable
}

// Store stores samples, lines and documents.
type Store interface {
	store.Docs
	// AppendSamples stores the new samples of batches, all of them or none. It returns store.ErrRefused for data that it will never take.
	AppendSamples(ctx context.Context, batches []store.Samples) error
	// AppendLines does for lines what AppendSamples does for samples.
	AppendLines(ctx context.Context, batches []store.Lines) error
}

// Deps are the dependencies of the service.
type Deps struct {
	Bus   Bus
	Store Store
}

// New returns the parts of the service, by name. The names are unique among all
// services, so that one process can run several.
func New(s Settings, d Deps) map[string]service.Runnable {
	i, most := &indexer{store: d.Store}, cmp.Or(s.Batch, 64)
	return map[string]service.Runnable{
		"metrics-pusher/index/metrics": d.Bus.Consume("metrics-pusher-metrics", service.Batch(most, i.metrics)),
		"metrics-pusher/index/logs":    d.Bus.Consume("metrics-pusher-logs", service.Batch(most, i.logs)),
	}
}
