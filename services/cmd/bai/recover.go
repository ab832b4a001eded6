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

// recovery restores lost content of the store from the topics, before any service
// decides by the store.
type recovery struct {
	platform  *platform
	remaining atomic.Int64 // number of events that have not been replayed yet
	done      chan struct{}
}

// isProjector reports whether a runnable only projects events into the store, and
// decides nothing.
func isProjector(part string) bool {
	return strings.HasPrefix(part, "gateway/record/") || strings.HasPrefix(part, "metrics-pusher/index/")
}

// projectorGroups returns the consumer groups of the projectors.
func projectorGroups() []string {
	return []string{"gateway", "metrics-pusher-metrics", "metrics-pusher-logs"}
}

// gate returns runnables in which all but the projectors start once the projectors have
// consumed all events.
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

// afterRecovery returns a runnable that starts part once the recovery is done.
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

// resubmit publishes submissions again for which there is no run in the store.
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
	return nil // done, or ctx has ended
}

// check returns the reason why the platform is not ready while events are replayed.
func (r *recovery) check(context.Context) error {
	select {
	case <-r.done:
		return nil
	default:
		return fmt.Errorf("hears events again that the store may have lost: %d left", r.remaining.Load())
	}
}

// checkConsistency checks whether the store and the broker are intact and match each
// other, before either is used. In doubt, it verifies the whole store and has all
// events replayed; files are the stamps before the store was opened.
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
		fmt.Fprintln(p.options.out, consistency.LostWithStore)
	}
	return s.Verify(ctx)
}
