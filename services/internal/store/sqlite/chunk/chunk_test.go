package chunk_test

import (
	gocmp "cmp"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite/chunk"
)

// drawn returns samples in any order.
func drawn() *rapid.Generator[[]event.Sample] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event.Sample {
		s := event.Sample{
			Seq: rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64()).Draw(t, "seq"), Sub: rapid.IntRange(-1, 1).Draw(t, "sub"),
			Name: rapid.SampledFrom([]string{"a", "b", "größe\x00"}).Draw(t, "name"), Unit: rapid.SampledFrom([]string{"", "ms"}).Draw(t, "unit"),
			Time: rapid.Int64().Draw(t, "time"), Direction: rapid.SampledFrom([]string{"", event.Higher, event.Lower}).Draw(t, "direction"),
		}
		s.Set(rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)})).Draw(t, "value"))
		if rapid.Bool().Draw(t, "has a step") {
			step := rapid.Int64().Draw(t, "step")
			s.Step = &step
		}
		if rapid.Bool().Draw(t, "has labels") {
			s.Labels = rapid.MapOfN(rapid.String(), rapid.String(), 1, 3).Draw(t, "labels")
		}
		return s
	}), 0, 20)
}

// key identifies a sample in its source.
type key struct {
	seq  int64
	sub  int
	name string
}

func (k key) compare(l key) int {
	return gocmp.Or(gocmp.Compare(k.seq, l.seq), gocmp.Compare(k.sub, l.sub), gocmp.Compare(k.name, l.name))
}

func keyOf(s event.Sample) key { return key{s.Seq, s.Sub, s.Name} }

func TestAChunkGivesBackTheSamplesThatItWasMadeOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := chunk.Ordered(drawn().Draw(t, "samples"))
		packed, err := chunk.Pack(chunk.Series{want})
		if err != nil {
			t.Fatal(err)
		}
		got, err := chunk.Unpack(packed)
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })); err != nil || len(want) > 0 && diff != "" {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	})
}

func TestSamplesAreMergedInOrderAndTheFirstOfEachStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawn().Draw(t, "samples")
		before := slices.Clone(all)
		n := rapid.IntRange(0, len(all)).Draw(t, "old")
		got := chunk.Merge(chunk.Ordered(all[:n]), chunk.Ordered(all[n:]))
		if diff := cmp.Diff(before, all); diff != "" {
			t.Fatalf("what was given is changed:\n%s", diff)
		}
		first := make(map[key]event.Sample)
		for _, s := range slices.Backward(all) {
			first[keyOf(s)] = s
		}
		if len(got) != len(first) {
			t.Fatalf("%d samples of %d that differ", len(got), len(first))
		}
		for _, s := range got {
			if diff := cmp.Diff(first[keyOf(s)], s); diff != "" {
				t.Fatalf("another sample stayed:\n%s", diff)
			}
		}
		if !slices.IsSortedFunc(got, func(a, b event.Sample) int { return keyOf(a).compare(keyOf(b)) }) {
			t.Fatalf("out of order: %+v", got)
		}
	})
}

func FuzzADamagedChunkIsAnErrorAndNoMore(f *testing.F) {
	step := int64(-7)
	s := event.Sample{Seq: 5, Sub: 1, Name: "loss", Unit: "1", Time: 1 << 60, Step: &step, Labels: map[string]string{"a": "b"}}
	s.Set(0.25)
	packed, err := chunk.Pack(chunk.Series{{s, s, s}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	f.Add([]byte{})
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, packed []byte) {
		samples, err := chunk.Unpack(packed)
		if err != nil {
			return
		}
		if _, err := chunk.Pack(chunk.Series{samples}); err != nil {
			t.Errorf("what was read cannot be written: %v", err)
		}
	})
}
