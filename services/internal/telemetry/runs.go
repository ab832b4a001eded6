package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const (
	statsMaxAge  = 10 * time.Second // age after which the runs are counted again
	statsTimeout = 5 * time.Second  // that counting may take
)

// runStats reports the number of runs, as the store has it at a scrape.
type runStats struct {
	store         store.Counter
	phases, ended *prometheus.Desc

	mu        sync.Mutex
	fetchedAt time.Time
	last      store.Stats
}

// Runs makes the telemetry report the number of runs in each phase and of each outcome.
// While the store is unavailable it reports none of them.
func (t *Telemetry) Runs(s store.Counter) {
	t.registry.MustRegister(&runStats{
		store:  s,
		phases: prometheus.NewDesc("bai_runs", "Runs that are in a phase.", []string{"phase"}, nil),
		ended:  prometheus.NewDesc("bai_runs_ended", "Runs that have come to an outcome.", []string{"outcome"}, nil),
	})
}

// Describe implements prometheus.Collector.
func (c *runStats) Describe(to chan<- *prometheus.Desc) { to <- c.phases; to <- c.ended }

// Collect implements prometheus.Collector.
func (c *runStats) Collect(to chan<- prometheus.Metric) {
	got, ok := c.current()
	if !ok {
		return
	}
	for _, phase := range event.Phases() {
		to <- prometheus.MustNewConstMetric(c.phases, prometheus.GaugeValue, float64(got.Phases[phase]), string(phase))
	}
	for _, outcome := range []event.Outcome{event.Succeeded, event.Failed, event.Canceled} {
		to <- prometheus.MustNewConstMetric(c.ended, prometheus.GaugeValue, float64(got.Outcomes[outcome]), string(outcome))
	}
}

func (c *runStats) current() (store.Stats, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.fetchedAt.IsZero() && time.Since(c.fetchedAt) < statsMaxAge {
		return c.last, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), statsTimeout) // the collector is given none
	defer cancel()
	got, err := c.store.Stats(ctx)
	if err != nil {
		return store.Stats{}, false
	}
	c.last, c.fetchedAt = got, time.Now()
	return got, true
}
