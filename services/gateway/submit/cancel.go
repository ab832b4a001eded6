package submit

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Cancel marks an unfinished run as canceled, and publishes the command. After it
// returns nil, the run will end: the mark is stored, and a command that cannot be
// published now is published later. Calling Cancel again publishes the same command
// again.
//
// The mark is the command itself, so every process publishes the same command.
func (in *Submitter) Cancel(ctx context.Context, run store.Run, by string) error {
	h := event.NewHeader(event.Derive("cancel", run.ID), run.ID, run.Namespace, run.Owner, in.now().UTC().Round(0))
	h.Lineage = run.Lineage
	mark := event.Command{Header: h, Kind: event.CommandCancel, By: by}
	err := store.Create(ctx, in.store, store.KindCancel, run.ID, mark)
	if errors.Is(err, store.ErrExists) {
		mark, _, err = store.Get[event.Command](ctx, in.store, store.KindCancel, run.ID)
	}
	if err != nil {
		return &UnavailableError{Err: fmt.Errorf("mark run %s: %w", run.ID, err)}
	}
	ctx, cancel := context.WithTimeout(ctx, in.settings.PublishTimeout)
	defer cancel()
	if err := in.bus.Publish(ctx, mark); err != nil {
		in.log.Warn("cancel marked, not published yet", zap.String("run", run.ID), zap.Error(err))
		return nil
	}
	in.log.Info("canceled", zap.String("run", run.ID), zap.String("by", by))
	return nil
}
