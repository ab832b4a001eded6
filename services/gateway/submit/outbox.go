package submit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// page is how many outbox entries are looked at at once.
const page = 100

// RunOutboxRelay publishes, at once and then from time to time, what was remembered but
// not published. It blocks until ctx is done. What it cannot do now it says
// once, and tries again.
func (in *Submitter) RunOutboxRelay(ctx context.Context) error {
	ticks := time.NewTicker(in.settings.OutboxInterval)
	defer ticks.Stop()
	failing := false
	for ctx.Err() == nil {
		err := in.RelayOutbox(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			in.log.Warn("outbox waits", zap.Error(err))
		}
		if err == nil && failing {
			in.log.Info("outbox goes on")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
		case <-ticks.C:
		}
	}
	return nil
}

// RelayOutbox carries through what lies in the outbox for longer than a submit takes.
// It returns when it has tried all, with what went wrong.
func (in *Submitter) RelayOutbox(ctx context.Context) error {
	var errs []error
	for after := ""; ; {
		docs, err := in.store.Docs(ctx, store.KindOutbox, after, page)
		if err != nil {
			return fmt.Errorf("look into the outbox: %w", err)
		}
		for _, d := range docs {
			after = d.Key
			err := in.relayEntry(ctx, d)
			if errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
				return err // whoever does not answer would be waited for with each entry
			}
			errs = append(errs, err)
		}
		if len(docs) < page {
			return errors.Join(errs...)
		}
	}
}

// relayEntry carries one entry through, unless a submit is likely at it.
func (in *Submitter) relayEntry(ctx context.Context, d store.Doc) error {
	var sub event.Submitted
	if err := json.Unmarshal(d.Value, &sub); err != nil {
		return fmt.Errorf("read outbox entry %q: %w", d.Key, err)
	}
	if in.now().Sub(sub.Time) < in.settings.PublishTimeout {
		return nil
	}
	err := in.publishSubmission(ctx, sub)
	var taken *NotUniqueError
	switch {
	case errors.As(err, &taken): // nobody was promised this run
		in.log.Info("dropped", zap.String("run", sub.Run), zap.Error(err))
		return nil
	case err != nil:
		return fmt.Errorf("publish run %s: %w", sub.Run, err)
	}
	in.log.Info("published", zap.String("run", sub.Run), zap.Duration("age", in.now().Sub(sub.Time)))
	return nil
}
