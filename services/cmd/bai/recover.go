package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/intake"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

// recovery has what the store may have lost come back from the topics before
// anything is decided by what the store says.
type recovery struct {
	platform *platform
	left     atomic.Int64 // events that are not heard again yet
	over     chan struct{}
}

// projects reports whether a part brings what events say into the store, and
// decides nothing.
func projects(part string) bool {
	return strings.HasPrefix(part, "gateway/record/") || strings.HasPrefix(part, "metrics-pusher/index/")
}

// projectors are the groups of these parts.
func projectors() []string {
	return []string{"gateway", "metrics-pusher-metrics", "metrics-pusher-logs"}
}

// first returns parts of which those that decide begin once those that bring
// events into the store have heard all that there is.
func (r *recovery) first(parts map[string]service.Part) map[string]service.Part {
	out := make(map[string]service.Part, len(parts)+1)
	for name, part := range parts {
		if !projects(name) {
			part = r.then(part)
		}
		out[name] = part
	}
	out["bai/recovery"] = r.run
	return out
}

// then returns part, to begin once the recovery is over.
func (r *recovery) then(part service.Part) service.Part {
	return func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-r.over:
			return part(ctx)
		}
	}
}

func (r *recovery) run(ctx context.Context) error {
	const again = 50 * time.Millisecond
	for {
		left, err := r.platform.bus.Left(ctx, projectors()...)
		if err == nil && left == 0 {
			break
		}
		r.left.Store(left)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
	}
	if err := r.resubmit(ctx); err != nil {
		return err
	}
	if m := r.platform.marks; m != nil && ctx.Err() == nil {
		if err := m.recovered(ctx); err != nil {
			return err
		}
	}
	r.platform.log.Info("all events are heard again")
	close(r.over)
	<-ctx.Done()
	return nil
}

// resubmit says again what was submitted and neither the topics nor the store have
// as a run.
func (r *recovery) resubmit(ctx context.Context) error {
	p := r.platform
	in := intake.New(p.settings.Gateway.Intake, intake.Deps{Store: p.store, Bus: p.bus, Now: time.Now, Log: p.log})
	n, err := in.Resubmit(ctx, func(ctx context.Context, run string) (bool, error) {
		_, err := p.store.Run(ctx, run)
		if errors.Is(err, store.ErrNotFound) {
			return false, nil
		}
		return err == nil, err
	})
	if n > 0 {
		p.log.Warn("runs that the broker had lost are submitted again", zap.Int("runs", n))
	}
	if err != nil && ctx.Err() == nil {
		return err
	}
	return nil // done, or told to end
}

// check says why the platform is not ready while events are heard again.
func (r *recovery) check(context.Context) error {
	select {
	case <-r.over:
		return nil
	default:
		return fmt.Errorf("hears events again that the store may have lost: %d left", r.left.Load())
	}
}

// compare looks whether store and broker are of one time and whole, before
// either is used. Where that is in doubt it reads the whole store, and has all
// events heard again. Files are as they were found.
func (p *platform) compare(ctx context.Context, s *sqlite.Store, files map[string]stamp) error {
	p.marks = &marks{dir: p.dir, store: s, acts: func() int64 { return p.bus.Acts() }}
	f, err := p.marks.look(ctx, s.ID())
	if err != nil {
		return err
	}
	f.Files = files
	why := doubts(f)
	put, err := p.marks.restore(f.Counter)
	if err != nil {
		return err
	}
	for _, key := range put {
		p.log.Warn(key + " was not as the store knows it, and is put back")
	}
	if done, err := p.marks.demand(ctx); err != nil {
		return err
	} else if done {
		p.log.Warn("the store did not know from where on messages must have a seal, and is told so again")
	}
	for _, w := range why {
		p.log.Warn("the data folder is checked, and all events are heard again", zap.String("why", w))
		fmt.Fprintf(p.options.out, "%s: the data folder is checked, and all events are heard again\n", w)
	}
	if len(why) == 0 {
		return nil
	}
	p.again = true
	if f.Mark != nil && f.Mark.Store != s.ID() {
		fmt.Fprintln(p.options.out, lostWithStore)
	}
	return s.Verify(ctx)
}

// lostWithStore says what the topics do not have.
const lostWithStore = "what only the store knew is lost: schedules, descriptors that were kept, names of artifacts and data sets, events older than the topics keep"

// unreadable says what to do about a store at path that cannot be read.
func unreadable(path string, err error) error {
	return fmt.Errorf("%w\nto begin without it, keep it and start again: mv %[2]s %[2]s.damaged && rm -f %[2]s-wal %[2]s-shm\nthen what the topics have is heard again; %[3]s", err, quoted(path), lostWithStore)
}

// quoted returns a path as a shell takes it.
func quoted(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
