package sqlite_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

func TestAStretchHasTheMarksOfAllTokensOfItsLinesInOrderAndOnce(t *testing.T) {
	for _, n := range []int{0, 1, 7, 100, 4096} { // sorted in one way and in the other
		var lines []event.Line
		var tokens []string
		for i := range n {
			l := lineOf(i)
			lines = append(lines, l)
			new(store.Tokenizer).Each(l.Text, func(token []byte) { tokens = append(tokens, string(token)) })
		}
		want := sqlite.HashTokens(tokens)
		if diff := cmp.Diff(want, sqlite.HashLines(lines)); diff != "" || !slices.IsSorted(want) {
			t.Errorf("%d lines (-want +got):\n%.1000s", n, diff)
		}
	}
}

func TestMarksAreThoseThatFilesHold(t *testing.T) {
	if diff := cmp.Diff([]uint32{0, 79323, 2541368}, sqlite.HashTokens([]string{"error", "", "cuda_error-7"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMarksAreFoundAmongThoseOfAStretch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // data for a test
	for range 1000 {
		marks, wanted := randomHashes(r, 2), randomHashes(r, 8)
		form := sqlite.EncodeHashes(marks)
		want := !slices.ContainsFunc(wanted, func(v uint32) bool { return !slices.Contains(marks, v) })
		if got, err := sqlite.ContainsHashes(form, wanted); err != nil || got != want {
			t.Fatalf("%v in %v: %t, %v", wanted, marks, got, err)
		}
		if back, err := sqlite.DecodeHashes(form); err != nil || !slices.Equal(marks, back) {
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
		if _, err := sqlite.DecodeHashes(form); err == nil {
			t.Errorf("%s: read", name)
		}
		if _, err := sqlite.ContainsHashes(form, []uint32{1}); err == nil {
			t.Errorf("%s: looked through", name)
		}
	}
}

func TestTheStretchesOfASourceThatBringsLittleAtATimeAreFew(t *testing.T) {
	s := storetest.Open(t)
	o := storetest.NewOrigin("r", "p")
	const n = 700
	for i := range n {
		for range 2 { // the second time adds no lines
			wantNil(t, s.AppendLines(t.Context(), []store.Lines{{Origin: o, Lines: []event.Line{storetest.NewLine(int64(i), fmt.Sprint("line ", i))}}}))
		}
	}
	all, err := s.SegmentSizes(t.Context())
	wantNil(t, err)
	total := 0
	for _, lines := range all {
		total += lines
	}
	if total != n || len(all) > 20 {
		t.Errorf("%d lines in %d stretches: %v", total, len(all), all)
	}
	got, _, err := s.Lines(t.Context(), store.LineQuery{Run: "r", Tokens: []string{"654"}}, "", 10)
	if err != nil || len(got) != 1 || got[0].Seq != 654 {
		t.Errorf("found %v, %v", got, err)
	}
}

func TestManyLinesAreFoundByTokensWithoutLookingAtAll(t *testing.T) {
	s := storetest.Open(t)
	const n = 10_000
	lines := make([]event.Line, n)
	for i := range lines {
		lines[i] = lineOf(i)
	}
	wantNil(t, s.AppendLines(t.Context(), []store.Lines{{Origin: storetest.NewOrigin("r", "p"), Lines: lines}}))
	if all, err := s.SegmentSizes(t.Context()); err != nil || len(all) != 3 {
		t.Errorf("%d stretches, %v", len(all), err)
	}
	got, next, err := s.Lines(t.Context(), store.LineQuery{Run: "r", Tokens: store.Words("step 9321")}, "", 10)
	if err != nil || len(got) != 1 || got[0].Text != lines[9321].Text {
		t.Errorf("found %v, %v", got, err)
	}
	if got, _, err = s.Lines(t.Context(), store.LineQuery{Run: "r", Tokens: store.Words("step 9321")}, next, 10); err != nil || len(got) > 0 {
		t.Errorf("found again %v, %v", got, err)
	}
}

// BenchmarkSearchLines searches one line among many.
func BenchmarkSearchLines(b *testing.B) {
	s := storetest.Open(b)
	const n = 500_000
	lines := make([]event.Line, n)
	for i := range lines {
		lines[i] = lineOf(i)
	}
	if err := s.AppendLines(b.Context(), []store.Lines{{Origin: storetest.NewOrigin("r", "p"), Lines: lines}}); err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{"rare": "step 321000", "none": "nowhere"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := s.Lines(b.Context(), store.LineQuery{Run: "r", Tokens: store.Words(text)}, "", 10); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
