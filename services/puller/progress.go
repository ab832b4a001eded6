package puller

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Patience is how long whoever publishes the progress should try.
const Patience = 3 * time.Second

// pace is the time between two words about the progress.
const pace = time.Second

// progress counts, and tells.
type progress struct {
	header event.Header
	say    func(event.Status)
	total  int64
	sets   int
	bytes  atomic.Int64
	there  atomic.Int64
}

func newProgress(cfg pod.Pull, all []group, say func(event.Status)) *progress {
	p := &progress{header: cfg.Header, say: say, sets: len(cfg.Data)}
	for _, g := range all {
		if !g.shared || cfg.Index == 0 {
			p.total += g.sets()[0].Size
		}
	}
	return p
}

// came counts bytes of objects; placed counts data sets.
func (p *progress) came(n int64) { p.bytes.Add(n) }
func (p *progress) placed()      { p.there.Add(1) }

// start tells the progress from time to time, until the function that it
// returns is called; that tells it for the last time.
func (p *progress) start() (stop func()) {
	if p.say == nil {
		return func() {}
	}
	var w sync.WaitGroup
	ended := make(chan struct{})
	w.Go(func() {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				p.tell()
				return
			case <-tick.C:
				p.tell()
			}
		}
	})
	return func() {
		close(ended)
		w.Wait()
	}
}

func (p *progress) tell() { p.say(status(p.header, p.there.Load(), p.sets, p.bytes.Load(), p.total)) }

// status says how far the pull has come. The same progress is the same fact.
func status(h event.Header, there int64, sets int, bytes, total int64) event.Status {
	return event.Status{
		Header:   h.Cause("status/pulling", fmt.Sprintf("%d/%d %d/%d", there, sets, bytes, total)),
		Phase:    event.PhasePending,
		Message:  fmt.Sprintf("copied %d of %d data sets to the machine", there, sets),
		Progress: &event.Progress{Done: bytes, Total: total, Unit: "bytes"},
	}
}
