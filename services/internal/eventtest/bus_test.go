package eventtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/bustest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/service"
)

func status() event.Status {
	h := event.NewHeader("m1", "r1", "pets", "ann", time.Unix(0, 0).UTC())
	return event.Status{Header: h, Phase: event.PhaseQueued, Message: "hello"}
}

func TestEveryEventIsHandedOverTwiceAndWhatFollowsIsSaidOnce(t *testing.T) {
	bus := eventtest.NewBus(t)
	calls := 0
	bus.Consume("g", service.On(func(_ context.Context, s event.Status) ([]event.Event, error) {
		calls++
		return []event.Event{event.Command{Header: s.Cause("cancel", ""), Kind: event.CommandCancel}}, nil
	}))
	bus.PublishAndWait(status())
	want(t, calls, 2)
	want(t, bus.TakeLines(), []string{"bai.status r1 queued: hello", "bai.commands r1 cancel"})
	want(t, len(eventtest.Published[event.Command](bus)), 1)

	bus.Redeliver(status())
	want(t, calls, 4)
	bus.Replay()
	want(t, calls, 6)
	want(t, bus.TakeLines(), nil)
}

func TestAStepThatTakesSeveralAlsoHearsAnEventTwiceInOneCall(t *testing.T) {
	bus := eventtest.NewBus(t)
	var sizes []int
	bus.Consume("g", service.Batch(10, func(_ context.Context, evs []event.Status) ([]event.Event, error) {
		sizes = append(sizes, len(evs))
		return nil, nil
	}))
	bus.PublishAndWait(status())
	want(t, sizes, []int{1, 1, 2})
}

func TestTryReturnsWhatAStepCannotDo(t *testing.T) {
	bus := eventtest.NewBus(t)
	away := errors.New("the store is away")
	bus.Consume("g", service.On(func(context.Context, event.Status) ([]event.Event, error) { return nil, away }))
	if err := bus.TryPublish(status()); !errors.Is(err, away) {
		t.Errorf("Try: %v, want %v", err, away)
	}
	if err := bus.TryPublish(status()); err != nil {
		t.Errorf("what was said before: %v, want nothing handed over", err)
	}
}

func TestTheBusInMemoryKeepsTheContract(t *testing.T) {
	bustest.Run(t, func(t *testing.T) bustest.Bus { t.Helper(); return eventtest.NewBus(t) })
}

func want[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
