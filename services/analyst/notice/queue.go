package notice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Key is the key of the documents of a notice: its delivery, and its entry in the queue of its receiver.
func Key(receiver, id string) string { return receiver + "/" + id }

// Enqueue has a notice sent to its receiver. To enqueue it again changes nothing, also when it was sent meanwhile: whoever sends removes
// the entry of a notice that is not waiting.
func Enqueue(ctx context.Context, docs store.Docs, n Notice, now time.Time) error {
	key := Key(n.Receiver, n.ID)
	d := Delivery{Notice: n, Status: Waiting, Next: now, At: now}
	if err := store.Create(ctx, docs, store.KindDelivery, key, d); err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("store notice %s: %w", n.ID, err)
	}
	err := store.Create(ctx, docs, store.KindUnsentNotice, key, struct{}{})
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("enqueue notice %s: %w", n.ID, err)
	}
	return nil
}
