package analysis_test

import (
	"testing"

	"github.com/benchmark-ai/bai/services/gateway/analysis"
)

func TestAPageCostsTheSameWhateverTheHistory(t *testing.T) {
	w := newFixture(t)
	reads := make(map[string][]int64)
	measure := func(name string, do func() error) {
		t.Helper()
		before := w.store.reads.Load()
		if err := do(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		reads[name] = append(reads[name], w.store.reads.Load()-before)
	}
	for range 3 {
		w.addAll("r", around(100, 300), spec{machine: "EPYC"})
		measure("history", func() error {
			_, err := w.History(t.Context(), analysis.HistoryRequest{Task: "rates", Namespace: "default", Limit: 150})
			return err
		})
		measure("power", func() error {
			_, err := w.Power(t.Context(), analysis.PowerRequest{Task: "rates", Namespace: "default", Metrics: []string{"rate"}})
			return err
		})
		measure("compare", func() error {
			_, err := w.Compare(t.Context(), analysis.CompareRequest{Old: "r299", New: "r300", Scope: analysis.Scope{Namespace: "default"}})
			return err
		})
		measure("range", func() error {
			_, err := w.Compare(t.Context(), analysis.CompareRequest{Old: "rates@2026-03-01..2026-05-01", New: "rates@2026-05-01..2026-07-01", Scope: analysis.Scope{Namespace: "default"}})
			return err
		})
	}
	for name, n := range reads {
		if n[0] != n[1] || n[0] != n[2] || n[0] > 6 {
			t.Errorf("%s reads the store %v times with 300, 600 and 900 runs", name, n)
		}
	}
}
