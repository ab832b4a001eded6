package intake_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/intake"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

func TestAFullDiskRefusesNewRunsAndKnowsThoseItHas(t *testing.T) {
	t.Parallel()
	h, why := newHouse(storetest.NewMemory()), ""
	in := intake.New(intake.Settings{}, intake.Deps{
		Store: h.store, Bus: voice{h.bus, lives()}, IDs: h.ids, Room: func() string { return why }, Now: func() time.Time { return h.clock }, Log: zap.NewNop(),
	})
	submit := func(key string) (intake.Accepted, error) {
		return in.Submit(t.Context(), request(func(r *intake.Request) { r.Key = key }))
	}
	first, err := submit("first")
	if err != nil {
		t.Fatal(err)
	}
	why = "the disk of /data is full"
	for _, key := range []string{"second", ""} {
		var full *intake.FullError
		if _, err := submit(key); !errors.As(err, &full) || !strings.Contains(err.Error(), why) {
			t.Errorf("a submit under the key %q: %v", key, err)
		}
	}
	if again, err := submit("first"); err != nil || again.Run != first.Run || !again.Repeated {
		t.Errorf("the first once more: %+v, %v", again, err)
	}
	if n := len(h.bus.runs()); n != 1 {
		t.Errorf("%d runs were published, want 1", n)
	}
	why = ""
	if _, err := submit("second"); err != nil {
		t.Errorf("once there is room: %v", err)
	}
	h.consistent(t)
}
