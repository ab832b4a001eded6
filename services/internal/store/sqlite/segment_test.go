package sqlite_test

import (
	"fmt"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

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
