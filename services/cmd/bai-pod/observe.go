//go:build linux

package main

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/observe"
)

// long is how long a command has run of which it is worth to ask programs for
// their versions once it has ended: that takes some of them a tenth of a second.
const long = time.Second

// observer writes down where the command runs, and what it uses. What it cannot
// write it leaves out: nobody waits for it.
type observer struct {
	dir   string
	files observe.Files
	every time.Duration // between two measurements; 0 is none at all
	where event.Environment
}

// newObserver returns an observer that measures every so often, a second where
// that is not said.
func newObserver(dir, every string) *observer {
	d, err := time.ParseDuration(every)
	if err != nil {
		d = time.Second
	}
	return &observer{dir: dir, every: max(d, 0)}
}

// beside observes a command until what it returns is called.
func (o *observer) beside(pid int) func(pod.Exit) {
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		o.where = o.files.Environment()
		o.where.Platform = version
		o.write()
	})
	if o.every > 0 {
		all.Go(func() { o.measure(ctx, pid) })
	}
	return func(end pod.Exit) {
		stop()
		all.Wait()
		if end.Ended.Sub(end.Started) < long {
			return
		}
		observe.Ask(context.Background(), &o.where)
		o.write()
	}
}

// write writes where the command runs, whole or not at all.
func (o *observer) write() {
	b, err := json.Marshal(o.where)
	path := pod.In(o.dir, pod.Where)
	if err == nil {
		err = os.WriteFile(path+".tmp", b, 0o644) //nolint:gosec // others read it
	}
	if err == nil {
		_ = os.Rename(path+".tmp", path)
	}
}

// measure appends what the command uses to a file, until ctx is done. The file is made with the first of it: short commands have none.
func (o *observer) measure(ctx context.Context, pid int) {
	var mu sync.Mutex
	var file *os.File
	keep := func(line []byte) {
		mu.Lock()
		defer mu.Unlock()
		if file == nil {
			f, err := os.OpenFile(pod.In(o.dir, pod.System), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644) //nolint:gosec // others read it
			if err != nil {
				return
			}
			file = f
		}
		_, _ = file.Write(line)
	}
	ticks := time.NewTicker(o.every)
	defer ticks.Stop()
	meter := observe.NewMeter(o.files, pid)
	var gpus sync.WaitGroup
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			gpus.Wait()
			if file != nil {
				_ = file.Close()
			}
			return
		case <-ticks.C:
		}
		if first {
			gpus.Go(func() { observe.GPUs(ctx, o.every, keep) })
		}
		if line := meter.Measure(); line != nil {
			keep(line)
		}
	}
}
