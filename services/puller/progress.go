package puller

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// PublishTimeout is how long a publisher of the progress should try.
const PublishTimeout = 3 * time.Second

// reportInterval is the time between two reports of the progress.
const reportInterval = time.Second

// progress counts pulled data, and reports them.
type progress struct {
	header     event.Header
	publish    func(event.Status)
	total      int64
	sets       int
	bytes      atomic.Int64
	placedSets atomic.Int64
}

func newProgress(cfg pod.Pull, all []objectGroup, publish func(event.Status)) *progress {
	p := &progress{header: cfg.Header, publish: publish, sets: len(cfg.Data)}
	for _, g := range all {
		if !g.shared || cfg.Index == 0 {
			p.total += g.sets()[0].Size
		}
	}
	return p
}

// addBytes counts bytes of objects; placed counts data sets.
func (p *progress) addBytes(n int64) { p.bytes.Add(n) }
func (p *progress) addPlaced()       { p.placedSets.Add(1) }

// start reports the progress every reportInterval, until the returned function is called, which reports it for the last time.
func (p *progress) start() (stop func()) {
	if p.publish == nil {
		return func() {}
	}
	var w sync.WaitGroup
	ended := make(chan struct{})
	w.Go(func() {
		tick := time.NewTicker(reportInterval)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				p.report()
				return
			case <-tick.C:
				p.report()
			}
		}
	})
	return func() {
		close(ended)
		w.Wait()
	}
}

func (p *progress) report() {
	p.publish(progressStatus(p.header, p.placedSets.Load(), p.sets, p.bytes.Load(), p.total))
}

// progressStatus returns a status with the progress of the pull. The same progress gives the same event ID.
func progressStatus(h event.Header, placed int64, sets int, bytes, total int64) event.Status {
	return event.Status{
		Header:   h.Cause("status/pulling", fmt.Sprintf("%d/%d %d/%d", placed, sets, bytes, total)),
		Phase:    event.PhasePending,
		Message:  fmt.Sprintf("copied %d of %d data sets to the machine", placed, sets),
		Progress: &event.Progress{Done: bytes, Total: total, Unit: "bytes"},
	}
}
