package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/cmd/bai/internal/consistency"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

// recovery has what the store may have lost come back from the topics before
// anything is decided by what the store says.
type recovery struct {
	platform  *platform
	remaining atomic.Int64 // events that are not heard again yet
	done      chan struct{}
}

// isProjector reports whether a part brings what events say into the store, and
// decides nothing.
func isProjector(part string) bool {
	return strings.HasPrefix(part, "gateway/record/") || strings.HasPrefix(part, "metrics-pusher/index/")
}

// projectorGroups are the groups of these parts.
func projectorGroups() []string {
	return []string{"gateway", "metrics-pusher-metrics", "metrics-pusher-logs"}
}

// gate returns parts of which those that decide begin once those that bring
// events into the store have heard all that there is.
func (r *recovery) gate(parts map[string]service.Runnable) map[string]service.Runnable {
	out := make(map[string]service.Runnable, len(parts)+1)
	for name, part := range parts {
		if !isProjector(name) {
			part = r.afterRecovery(part)
		}
		out[name] = part
	}
	out["bai/recovery"] = r.run
	return out
}

// afterRecovery returns part, to begin once the recovery is over.
func (r *recovery) afterRecovery(part service.Runnable) service.Runnable {
	return func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-r.done:
			return part(ctx)
		}
	}
}

func (r *recovery) run(ctx context.Context) error {
	const again = 50 * time.Millisecond
	for {
		left, err := r.platform.bus.Backlog(ctx, projectorGroups()...)
		if err == nil && left == 0 {
			break
		}
		r.remaining.Store(left)
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
		if err := m.MarkRecovered(ctx); err != nil {
			return err
		}
	}
	r.platform.log.Info("all events are heard again")
	close(r.done)
	<-ctx.Done()
	return nil
}

// resubmit says again what was submitted and neither the topics nor the store have
// as a run.
func (r *recovery) resubmit(ctx context.Context) error {
	p := r.platform
	in := submit.New(p.settings.Gateway.Submit, submit.Deps{Store: p.store, Bus: p.bus, Now: time.Now, Log: p.log})
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
	case <-r.done:
		return nil
	default:
		return fmt.Errorf("hears events again that the store may have lost: %d left", r.remaining.Load())
	}
}

// checkConsistency looks whether store and broker are of one time and whole, before
// either is used. Where that is in doubt it reads the whole store, and has all
// events heard again. Files are as they were found.
func (p *platform) checkConsistency(ctx context.Context, s *sqlite.Store, files map[string]consistency.FileStamp) error {
	p.marks = consistency.New(p.dir, s, func() int64 { return p.bus.Activity() })
	f, err := p.marks.ReadStartState(ctx, s.ID())
	if err != nil {
		return err
	}
	f.Files = files
	problems := consistency.IntegrityProblems(f)
	restored, err := p.marks.RestoreKeys(f.StoreMark)
	if err != nil {
		return err
	}
	for _, key := range restored {
		p.log.Warn(key + " was not as the store knows it, and is put back")
	}
	if done, err := p.marks.RestoreSeals(ctx); err != nil {
		return err
	} else if done {
		p.log.Warn("the store did not know from where on messages must have a seal, and is told so again")
	}
	for _, w := range problems {
		p.log.Warn("the data folder is checked, and all events are heard again", zap.String("why", w))
		fmt.Fprintf(p.options.out, "%s: the data folder is checked, and all events are heard again\n", w)
	}
	if len(problems) == 0 {
		return nil
	}
	p.replay = true
	if f.Mark != nil && f.Mark.Store != s.ID() {
		fmt.Fprintln(p.options.out, lostWithStore)
	}
	return s.Verify(ctx)
}

// lostWithStore says what the topics do not have.
const lostWithStore = "what only the store knew is lost: schedules, descriptors that were kept, names of artifacts and data sets, events older than the topics keep"

// unreadable says what to do about a store at path that cannot be read.
func unreadable(path string, err error) error {
	return fmt.Errorf("%w\nto begin without it, keep it and start again: mv %[2]s %[2]s.damaged && rm -f %[2]s-wal %[2]s-shm\nthen what the topics have is heard again; %[3]s", err, shellQuote(path), lostWithStore)
}

// shellQuote returns a path as a shell takes it.
func shellQuote(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
