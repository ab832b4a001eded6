package pointvalue_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite/pointvalue"
)

// sameBits compares numbers as they are stored.
func sameBits() cmp.Option {
	return cmp.Comparer(func(a, b store.Float) bool { return math.Float64bits(float64(a)) == math.Float64bits(float64(b)) })
}

func TestAnyValueIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) store.Float {
			return store.Float(rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)})).Draw(t, name))
		}
		s := store.Summary{
			Metric: "loss", Unit: "s", Labels: map[string]string{"gpu": "0"}, N: rapid.Int64().Draw(t, "n"), NotNumbers: rapid.Int64().Draw(t, "not numbers"),
			Min: number("min"), Max: number("max"), Median: number("median"), P90: number("p90"), P95: number("p95"), P99: number("p99"),
			Mean: number("mean"), SD: number("sd"), First: number("first"), Last: number("last"),
			Direction: rapid.SampledFrom([]string{"", event.Higher, event.Lower}).Draw(t, "direction"),
		}
		if rapid.Bool().Draw(t, "interval") {
			s.Interval = &store.Interval{Low: number("low"), High: number("high"), Level: rapid.Float64().Draw(t, "level")}
		}
		got, err := pointvalue.Decode(store.SeriesKey{Metric: "loss", Unit: "s", Labels: map[string]string{"gpu": "0"}}, pointvalue.Encode(s))
		if diff := cmp.Diff(s, got, sameBits()); err != nil || diff != "" {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(pointvalue.Encode(store.Summary{Direction: event.Higher}))
	f.Add(pointvalue.Encode(store.Summary{N: -1, Interval: &store.Interval{}}))
	f.Add([]byte{})
	f.Add([]byte{1, 0x80, 0x80})
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := pointvalue.Decode(store.SeriesKey{}, b); err != nil && !errors.Is(err, pointvalue.ErrDamaged) {
			t.Error(err)
		}
	})
}
