package event_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// batch returns a batch as a collector sends it.
func batch() event.Metrics {
	at := time.Unix(1767323045, 123456789).UTC()
	m := event.Metrics{Header: event.NewHeader("m1", "r1", "pets", "ann", at), Stream: event.Stream{Role: "r", Pod: "p", Container: "c", Kind: "s"}}
	for i := range 1000 {
		s := event.Sample{Seq: int64(i * 30), Name: fmt.Sprintf("metric-%d", i%3), Unit: "ms", Time: at.UnixNano() + int64(i)}
		s.Set(float64(i) * 1.1)
		m.Samples = append(m.Samples, s)
	}
	return m
}

// BenchmarkSamples is per batch of 1,000 samples.
func BenchmarkSamples(b *testing.B) {
	m := batch()
	encoded, err := event.Encode(m)
	if err != nil {
		b.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"Encode":               func() error { _, err := event.Encode(m); return err },
		"Encode/encoding-json": func() error { _, err := json.Marshal(m); return err },
		"Decode":               func() error { _, err := event.Decode[event.Metrics](encoded); return err },
		"Decode/encoding-json": func() error { return json.Unmarshal(encoded.Value, new(event.Metrics)) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
