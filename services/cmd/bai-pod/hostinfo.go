//go:build linux

package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/entrypoint"
	"github.com/benchmark-ai/bai/services/internal/pod/hostinfo"
)

// minRuntime is the minimum run time of a command after which programs are asked for
// their versions. Asking takes a tenth of a second for some of them.
const minRuntime = time.Second

// hostRecorder records the environment of the command, and its usage of the machine. It
// ignores errors, because the command matters more.
type hostRecorder struct {
	dir         string
	files       hostinfo.Files
	every       time.Duration // time between two measurements; 0 means none
	environment event.Environment
}

// newHostRecorder returns a hostRecorder that measures at the interval every, or each
// second if every is not a duration.
func newHostRecorder(dir, every string) *hostRecorder {
	d, err := time.ParseDuration(every)
	if err != nil {
		d = time.Second
	}
	return &hostRecorder{dir: dir, every: max(d, 0)}
}

// start records a command until stop is called, with programs that run runs. The function end adds the versions of tools that it has by the
// time its context is done.
func (o *hostRecorder) start(pid int, run entrypoint.RunFunc) (stop func(), end func(context.Context, pod.Exit)) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		o.environment = o.files.Environment()
		o.environment.Platform = version
		o.writeEnvironment()
	})
	if o.every > 0 {
		all.Go(func() { o.recordUsage(ctx, pid, hostinfo.RunFunc(run)) })
	}
	stop = func() {
		cancel()
		all.Wait()
	}
	return stop, func(ctx context.Context, end pod.Exit) {
		stop()
		long := end.Ended.Sub(end.Started) >= minRuntime
		if long {
			hostinfo.AddTools(ctx, hostinfo.RunFunc(run), &o.environment)
		}
		if len(end.Tools) > 0 && o.environment.Tools == nil {
			o.environment.Tools = make(map[string]string)
		}
		maps.Copy(o.environment.Tools, end.Tools)
		if long || len(end.Tools) > 0 {
			o.writeEnvironment()
		}
	}
}

// writeEnvironment writes the environment file atomically.
func (o *hostRecorder) writeEnvironment() {
	b, err := json.Marshal(o.environment)
	path := pod.PathIn(o.dir, pod.EnvironmentFile)
	if err == nil {
		err = os.WriteFile(path+".tmp", b, 0o644) //nolint:gosec // others read it
	}
	if err == nil {
		_ = os.Rename(path+".tmp", path)
	}
}

// recordUsage appends the usage of the command to a file until ctx is done. The first
// measurement creates the file, so a short command has none.
func (o *hostRecorder) recordUsage(ctx context.Context, pid int, run hostinfo.RunFunc) {
	var mu sync.Mutex
	var file *os.File
	keep := func(line []byte) {
		mu.Lock()
		defer mu.Unlock()
		if file == nil {
			f, err := os.OpenFile(pod.PathIn(o.dir, pod.System), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644) //nolint:gosec // others read it
			if err != nil {
				return
			}
			file = f
		}
		_, _ = file.Write(line)
	}
	ticks, energy := time.NewTicker(o.every), time.NewTicker(hostinfo.EnergyInterval)
	defer ticks.Stop()
	defer energy.Stop()
	meter := hostinfo.NewMeter(o.files, pid)
	var gpus sync.WaitGroup
	for first := true; ; {
		select {
		case <-ctx.Done():
			gpus.Wait()
			if file != nil {
				keep(meter.Energy()) // up to the end
				_ = file.Close()
			}
			return
		case <-energy.C:
			meter.ReadEnergy()
			continue
		case <-ticks.C:
		}
		if first {
			gpus.Go(func() { hostinfo.GPUs(ctx, run, o.every, keep) })
			first = false
		}
		if line := meter.Measure(); line != nil {
			keep(append(line, meter.Energy()...))
		}
	}
}
