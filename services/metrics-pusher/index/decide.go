package index

import (
	"errors"
	"fmt"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// samplesOf returns what is to be stored of events, in their order.
func samplesOf(events []event.Metrics) []store.Samples {
	batches := make([]store.Samples, len(events))
	for i, ev := range events {
		batches[i] = store.Samples{Origin: origin(ev.Header, ev.Stream), Samples: ev.Samples, End: ev.End}
	}
	return batches
}

// linesOf returns what is to be stored of events, in their order.
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

// refused says what an error of the store means for the messages that it was
// given: what the store will never have is event.ErrPoison, everything else is
// tried again.
func refused(err error) error {
	if errors.Is(err, store.ErrRefused) {
		return fmt.Errorf("%w: %w", event.ErrPoison, err)
	}
	return err
}
