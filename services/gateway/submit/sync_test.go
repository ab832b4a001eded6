package submit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// requestWithKey returns a request with an idempotency key.
func requestWithKey(key string) submit.Request {
	return request(func(r *submit.Request) { r.Key = key })
}

func TestARunIsAcceptedOnlyOnceItIsOnTheDisk(t *testing.T) {
	h := newHarness(openSQLite(t))
	var synced []string
	fails := errors.New("the disk failed")
	in := submit.New(submit.Settings{}, submit.Deps{
		Store: h.store, Bus: h.bus, IDs: h.ids, Now: func() time.Time { return h.clock }, Log: zap.NewNop(),
		Sync: func(context.Context) error {
			synced = h.docs(t, store.KindSubmission) //nolint:contextcheck // the test's own
			return fails
		},
	})
	var unavailable *submit.UnavailableError
	if _, err := in.Submit(t.Context(), requestWithKey("key")); !errors.As(err, &unavailable) || !errors.Is(err, fails) {
		t.Errorf("Submit: %v, want that it may work later", err)
	}
	fails = nil
	acc, err := in.Submit(t.Context(), requestWithKey("key"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{acc.Run}, synced); d != "" {
		t.Errorf("what was stored when the disk was waited for (-want +got):\n%s", d)
	}
}

func TestWhatTheBrokerLostIsSubmittedAgain(t *testing.T) {
	h := newHarness(openSQLite(t))
	in := h.newSubmitter(neverCrashes())
	var runs []string
	for _, key := range []string{"a", "b", "c"} {
		acc, err := in.Submit(t.Context(), requestWithKey(key))
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, acc.Run)
	}
	h.bus = &recordingBus{}
	n, err := h.newSubmitter(neverCrashes()).Resubmit(t.Context(), func(_ context.Context, run string) (bool, error) { return run == runs[1], nil })
	if err != nil || n != 2 {
		t.Errorf("Resubmit: %d, %v, want 2", n, err)
	}
	if d := cmp.Diff([]string{runs[0], runs[2]}, h.bus.runs()); d != "" {
		t.Errorf("published (-want +got):\n%s", d)
	}
}
