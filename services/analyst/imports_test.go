package analyst_test

import (
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// importRun stores the next run of the task as an import does, which publishes nothing.
func (w *fixture) importRun(text string, history bool, changes ...func(*store.Run)) {
	w.t.Helper()
	ev := w.put(text, 120, changes...)
	if err := store.Create(w.t.Context(), w.store, store.KindImport, ev.Run, map[string]bool{"history": history}); err != nil {
		w.t.Fatal(err)
	}
	if history {
		return
	}
	all, err := w.store.RunPoints(w.t.Context(), []string{ev.Run}, nil)
	if err != nil || len(all) != 1 {
		w.t.Fatalf("%d runs: %v", len(all), err)
	}
	all[0].Excluded = store.ExcludedImport
	all[0].Revision++
	if err := w.store.PutPoints(w.t.Context(), all[0]); err != nil {
		w.t.Fatal(err)
	}
}

// foreign makes a run one of a schedule of another platform.
func foreign(r *store.Run) {
	fired(r)
	r.Schedule = "elsewhere"
}

func TestAnImportThatFailedIsNoFailureOfTheTaskUnlessItIsPartOfTheHistory(t *testing.T) {
	for history, incidents := range map[bool][]string{false: nil, true: {"failed  firing from r02"}} {
		w := newFixture(t).listen()
		w.run(descriptor(fails), 120)
		w.importRun(descriptor(fails), history, failed)
		w.run(descriptor(fails), 0, failed, func(r *store.Run) { r.Warmup = true }) // looks at the task, and is no failure itself
		want(t, "incidents", incidents, w.incidents())
	}
}

func TestTheScheduleOfAnImportedRunSaysNothingOfWhatIsDue(t *testing.T) {
	for _, history := range []bool{false, true} {
		w := newFixture(t).listen()
		w.schedule(false)
		w.run(descriptor(nightly), 120, fired)
		w.importRun(descriptor(nightly), history, foreign)
		w.now = begin.Add(4 * day)
		w.tick()
		if got := w.incidents(); len(got) != 1 {
			t.Errorf("history %t: incidents %q, want one of the nights without a value", history, got)
		}
	}
}

func TestAnImportedHistoryNotifiesNobodyOfWhatLiesFarBack(t *testing.T) {
	w := newFixture(t).listen()
	for i := range 40 {
		rate := 100.0
		if i >= 20 {
			rate = 92
		}
		ev := w.put(descriptor(slower), rate+float64(i*7%5)/5)
		if err := store.Create(t.Context(), w.store, store.KindImport, ev.Run, map[string]bool{"history": true}); err != nil {
			t.Fatal(err)
		}
	}
	w.now = w.now.Add(time.Hour)
	w.run(descriptor(slower), 92)
	if got := w.incidents(); len(got) != 1 {
		t.Errorf("incidents %q, want the one of the imported history", got)
	}
	want(t, "notices", nil, w.sizes())
}
