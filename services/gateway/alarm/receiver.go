package alarm

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Receivers returns the names of the receivers that a team may use, sorted.
func (a *Alarms) Receivers(namespace string) []string { return usable(a.deps.Receivers, namespace) }

// TestRequest asks for a test of a receiver.
type TestRequest struct {
	Namespace string
	Receiver  string
	Key       string // of the caller: the same key again is the same test; empty means a new one
	By        string
}

// The times of waiting for the answer to a test.
const (
	testPoll = 200 * time.Millisecond
	testWait = 20 * time.Second
)

// Test has a marked notice sent to a receiver, and returns it once the receiver has answered, or as it is after 20 s. The error is
// *FieldError, or *MissingError for a receiver that the team may not use.
func (a *Alarms) Test(ctx context.Context, r TestRequest) (notice.Delivery, error) {
	if err := checkTest(r, a.Receivers(r.Namespace)); err != nil {
		return notice.Delivery{}, err
	}
	now := a.now()
	n := notice.NewTest(r.Receiver, r.Namespace, r.By, cmp.Or(r.Key, rand.Text()), now)
	if err := notice.Enqueue(ctx, a.deps.Store, n, now); err != nil {
		return notice.Delivery{}, fmt.Errorf("test receiver %s: %w", r.Receiver, err)
	}
	wait, stop := context.WithTimeout(ctx, testWait)
	defer stop()
	for {
		got, _, err := store.Get[notice.Delivery](ctx, a.deps.Store, store.KindDelivery, notice.Key(n.Receiver, n.ID))
		if err != nil {
			return got, fmt.Errorf("read the test of receiver %s: %w", r.Receiver, err)
		}
		if got.Status != notice.Waiting || !control.Sleep(wait, testPoll) {
			return got, ctx.Err()
		}
	}
}
