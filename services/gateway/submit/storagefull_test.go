package submit_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

func TestAFullDiskRefusesNewRunsAndKnowsThoseItHas(t *testing.T) {
	t.Parallel()
	h, reason := newHarness(storetest.NewMemory()), ""
	in := submit.New(submit.Settings{}, submit.Deps{
		Store: h.store, Bus: h.bus, IDs: h.ids, StorageFull: func() string { return reason }, Now: func() time.Time { return h.clock }, Log: zap.NewNop(),
	})
	send := func(key string) (submit.Accepted, error) {
		return in.Submit(t.Context(), request(func(r *submit.Request) { r.Key = key }))
	}
	first, err := send("first")
	if err != nil {
		t.Fatal(err)
	}
	reason = "the disk of /data is full"
	for _, key := range []string{"second", ""} {
		var full *submit.StorageFullError
		if _, err := send(key); !errors.As(err, &full) || !strings.Contains(err.Error(), reason) {
			t.Errorf("a submit under the key %q: %v", key, err)
		}
	}
	if again, err := send("first"); err != nil || again.Run != first.Run || !again.Repeated {
		t.Errorf("the first once more: %+v, %v", again, err)
	}
	if n := len(h.bus.runs()); n != 1 {
		t.Errorf("%d runs were published, want 1", n)
	}
	reason = ""
	if _, err := send("second"); err != nil {
		t.Errorf("once there is room: %v", err)
	}
	h.checkConsistent(t)
}

func TestAFullDiskRefusesARunThatWasWithdrawnAlsoOnceItsSetIsResumed(t *testing.T) {
	t.Parallel()
	h := newHarness(storetest.NewMemory())
	in := submit.New(submit.Settings{}, submit.Deps{
		Store: h.store, Bus: h.bus, IDs: h.ids, StorageFull: func() string { return "full" }, Now: func() time.Time { return h.clock }, Log: zap.NewNop(),
	})
	if _, err := in.Withdraw(t.Context(), runID, "7", 0); err != nil {
		t.Fatal(err)
	}
	var full *submit.StorageFullError
	if acc, err := in.Submit(t.Context(), cellRequest(1)); !errors.As(err, &full) {
		t.Errorf("run %q, %v, want a StorageFullError", acc.Run, err)
	}
}
