package analysis_test

import (
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/gateway/analysis"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

// addImport stores a run of another platform.
func (w *fixture) addImport(name string, value float64, history bool) {
	w.t.Helper()
	upgraded := w.upgraded
	w.upgraded = true // its points are stored below
	w.add(spec{name: name, values: []float64{value}})
	w.upgraded = upgraded
	id := w.names[name]
	if err := store.Create(w.t.Context(), w.store, store.KindImport, id, map[string]bool{"history": history}); err != nil {
		w.t.Fatal(err)
	}
	if upgraded {
		return
	}
	run, err := w.store.Run(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	all, _, err := store.Get[store.Summaries](w.t.Context(), w.store, store.KindSummary, id)
	if err != nil {
		w.t.Fatal(err)
	}
	p := points.Of(run, points.Results{Summaries: &all, Revision: 1, Imported: !history})
	if err := w.store.PutPoints(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
}

func TestImportsThatWereNotAskedForCountOnlyWhereTheyAreNamed(t *testing.T) {
	bothWays(t, func(t *testing.T, w *fixture) {
		t.Helper()
		w.addAll("r", around(100, 20), spec{})
		w.addImport("guest", 200, false)
		w.addImport("asked", 100, true)
		h, err := w.History(t.Context(), analysis.HistoryRequest{Task: "rates", Namespace: "default", Metrics: []string{"rate"}})
		if err != nil {
			t.Fatal(err)
		}
		if len(h.Runs) != 21 || h.Excluded != 1 {
			t.Errorf("%d runs are points and %d are none, want 21 and 1", len(h.Runs), h.Excluded)
		}
		scope := analysis.Scope{Namespace: "default"}
		named, err := w.Compare(t.Context(), analysis.CompareRequest{Old: "r20", New: "guest", Scope: scope})
		if err != nil || len(named.Series) == 0 || len(named.New.Excluded) != 0 {
			t.Errorf("compare with the import: %+v, %v", named, err)
		}
		ofTask, err := w.Compare(t.Context(), analysis.CompareRequest{Old: "task:rates", New: "r20", Scope: scope})
		if err != nil || len(ofTask.Old.Excluded) != 1 || !strings.Contains(ofTask.Old.Excluded[0].Reason, "baictl import --history") {
			t.Errorf("compare the runs of the task: %+v, %v", ofTask.Old, err)
		}
	})
}
