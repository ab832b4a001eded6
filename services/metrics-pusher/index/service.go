// Package index brings what pods have shipped into the store: samples and lines.
//
// Nothing of a message is forgotten by the brokers before all of it is stored,
// and what comes twice is stored once. While the store is away everything waits,
// in order. Only what the store will never have becomes a dead letter.
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
	// Consume returns the part that hands what step hears to step, and carries
	// on what step answers. Parts of one group share the events.
	Consume(group string, step service.Step) service.Runnable
}

// Store keeps samples, lines and documents.
type Store interface {
	store.Docs
	// AppendSamples stores samples that are not there yet, all of them or none.
	// It says store.ErrRefused for what it will never have.
	AppendSamples(ctx context.Context, batches []store.Samples) error
	// AppendLines is to lines what AppendSamples is to samples.
	AppendLines(ctx context.Context, batches []store.Lines) error
}

// Deps are what the service needs from others.
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
