package submit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// RunOutboxRelay publishes the entries of the outbox at intervals, until ctx is done.
func (in *Submitter) RunOutboxRelay(ctx context.Context) error {
	relay := func(ctx context.Context) (time.Duration, error) { return 0, in.RelayOutbox(ctx) }
	return control.NewLoop("outbox", in.settings.OutboxInterval, in.log, relay, control.LoopSettings{
		Failing: "outbox waits", Working: "outbox goes on",
	}).Run(ctx)
}

// RelayOutbox publishes the outbox entries that are older than a submit takes. It tries
// each entry once, and returns all errors. It stops early if the broker does not
// answer.
func (in *Submitter) RelayOutbox(ctx context.Context) error {
	var errs []error
	for d, err := range store.All[event.Submitted](ctx, in.store, store.KindOutbox, "") {
		if err == nil {
			err = in.relayEntry(ctx, d.Value)
		}
		if errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return err // otherwise each entry would wait for the broker
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// relayEntry publishes one entry, unless a submit is probably still working on it.
func (in *Submitter) relayEntry(ctx context.Context, sub event.Submitted) error {
	if in.now().Sub(sub.Time) < in.settings.PublishTimeout {
		return nil
	}
	err := in.publishSubmission(ctx, sub)
	var taken *NotUniqueError
	switch {
	case errors.As(err, &taken): // no client was promised this run
		in.log.Info("dropped", zap.String("run", sub.Run), zap.Error(err))
		return nil
	case err != nil:
		return fmt.Errorf("publish run %s: %w", sub.Run, err)
	}
	in.log.Info("published", zap.String("run", sub.Run), zap.Duration("age", in.now().Sub(sub.Time)))
	return nil
}
