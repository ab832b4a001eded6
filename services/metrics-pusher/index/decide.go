package index

import (
	"errors"
	"fmt"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// samplesOf returns the samples of events for the store, in their order.
func samplesOf(events []event.Metrics) []store.Samples {
	batches := make([]store.Samples, len(events))
	for i, ev := range events {
		batches[i] = store.Samples{Origin: origin(ev.Header, ev.Stream), Samples: ev.Samples, End: ev.End}
	}
	return batches
}

// linesOf returns the lines of events for the store, in their order.
func linesOf(events []event.Logs) []store.Lines {
	batches := make([]store.Lines, len(events))
	for i, ev := range events {
		batches[i] = store.Lines{Origin: origin(ev.Header, ev.Stream), Lines: ev.Lines, End: ev.End}
	}
	return batches
}

func origin(h event.Header, s event.Stream) store.Origin {
	return store.Origin{Run: h.Run, Attempt: h.Attempt, Stream: s}
}

// refused translates an error of the store: data that the store will never take are event.ErrPoison, every other error is retried.
func refused(err error) error {
	if errors.Is(err, store.ErrRefused) {
		return fmt.Errorf("%w: %w", event.ErrPoison, err)
	}
	return err
}
