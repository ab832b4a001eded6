package intake_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/intake"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// keyed is a request under an idempotency key.
func keyed(key string) intake.Request {
	return request(func(r *intake.Request) { r.Key = key })
}

func TestARunIsAcceptedOnlyOnceItIsOnTheDisk(t *testing.T) {
	h := newHouse(openSQLite(t))
	var synced []string
	fails := errors.New("the disk failed")
	in := intake.New(intake.Settings{}, intake.Deps{
		Store: h.store, Bus: voice{h.bus, lives()}, IDs: h.ids, Now: func() time.Time { return h.clock }, Log: zap.NewNop(),
		Sync: func(context.Context) error {
			synced = h.docs(t, store.KindSubmission) //nolint:contextcheck // the test's own
			return fails
		},
	})
	var away *intake.UnavailableError
	if _, err := in.Submit(t.Context(), keyed("key")); !errors.As(err, &away) || !errors.Is(err, fails) {
		t.Errorf("Submit: %v, want that it may work later", err)
	}
	fails = nil
	acc, err := in.Submit(t.Context(), keyed("key"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{acc.Run}, synced); d != "" {
		t.Errorf("what was stored when the disk was waited for (-want +got):\n%s", d)
	}
}

func TestWhatTheBrokerLostIsSubmittedAgain(t *testing.T) {
	h := newHouse(openSQLite(t))
	in := h.process(lives())
	var runs []string
	for _, key := range []string{"a", "b", "c"} {
		acc, err := in.Submit(t.Context(), keyed(key))
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, acc.Run)
	}
	h.bus = &bus{}
	n, err := h.process(lives()).Resubmit(t.Context(), func(_ context.Context, run string) (bool, error) { return run == runs[1], nil })
	if err != nil || n != 2 {
		t.Errorf("Resubmit: %d, %v, want 2", n, err)
	}
	if d := cmp.Diff([]string{runs[0], runs[2]}, h.bus.runs()); d != "" {
		t.Errorf("published (-want +got):\n%s", d)
	}
}
