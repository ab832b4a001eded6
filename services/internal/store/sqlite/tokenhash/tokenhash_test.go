package tokenhash_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite/tokenhash"
)

func TestAStretchHasTheMarksOfAllTokensOfItsLinesInOrderAndOnce(t *testing.T) {
	for _, n := range []int{0, 1, 7, 100, 4096} { // sorted in one way and in the other
		var lines []event.Line
		var tokens []string
		for i := range n {
			l := event.Line{Seq: int64(i), Text: fmt.Sprintf("step %d/100000 loss %.4f lr 1e-4", i, 7.5/float64(i+1))}
			lines = append(lines, l)
			new(store.Tokenizer).Each(l.Text, func(token []byte) { tokens = append(tokens, string(token)) })
		}
		want := tokenhash.Of(tokens)
		if diff := cmp.Diff(want, new(tokenhash.Hasher).Lines(lines)); diff != "" || !slices.IsSorted(want) {
			t.Errorf("%d lines (-want +got):\n%.1000s", n, diff)
		}
	}
}

func TestMarksAreThoseThatFilesHold(t *testing.T) {
	if diff := cmp.Diff([]uint32{0, 79323, 2541368}, tokenhash.Of([]string{"error", "", "cuda_error-7"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMarksAreFoundAmongThoseOfAStretch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // data for a test
	for range 1000 {
		marks, wanted := randomHashes(r, 2), randomHashes(r, 8)
		form := tokenhash.Encode(marks)
		want := !slices.ContainsFunc(wanted, func(v uint32) bool { return !slices.Contains(marks, v) })
		if got, err := tokenhash.Contain(form, wanted); err != nil || got != want {
			t.Fatalf("%v in %v: %t, %v", wanted, marks, got, err)
		}
		if back, err := tokenhash.Decode(form); err != nil || !slices.Equal(marks, back) {
			t.Fatalf("%v became %v, %v", marks, back, err)
		}
	}
}

// randomHashes returns a random part of 40 hashes, each with a probability of 1/of, in order.
func randomHashes(r *rand.Rand, of int) (hashes []uint32) {
	for v := range uint32(40) {
		if r.IntN(of) == 0 {
			hashes = append(hashes, v*v*v)
		}
	}
	return hashes
}

func TestMarksThatAreDamagedAreNotRead(t *testing.T) {
	for name, form := range map[string][]byte{"cut": {0x80}, "too long": {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} {
		if _, err := tokenhash.Decode(form); err == nil {
			t.Errorf("%s: read", name)
		}
		if _, err := tokenhash.Contain(form, []uint32{1}); err == nil {
			t.Errorf("%s: looked through", name)
		}
	}
}
