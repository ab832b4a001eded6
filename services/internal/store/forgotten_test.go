package store_test

import (
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

func TestASubmissionIsFoundUnlessItsRunWasForgotten(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		marks       []time.Time
		found, gone bool
	}{
		"nothing was forgotten":          {nil, true, false},
		"earlier runs were forgotten":    {[]time.Time{at}, true, false},
		"the run was forgotten":          {[]time.Time{at.Add(1)}, false, true},
		"a later mark is not taken back": {[]time.Time{at.Add(time.Hour), at.Add(-time.Hour)}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.NewMemory()
			sub := event.Submitted{Header: event.NewHeader("e", "r", "default", "ann", at)}
			check(t, store.Create(t.Context(), s, store.KindSubmission, "r", sub))
			for _, before := range tt.marks {
				check(t, store.MarkForgotten(t.Context(), s, before))
			}
			got, found, err := store.FindSubmission(t.Context(), s, "r")
			if err != nil || found != tt.found || found && got.Run != "r" {
				t.Errorf("found %t, %v, want %t", found, err, tt.found)
			}
			if gone, err := store.RunForgotten(t.Context(), s, "r"); err != nil || gone != tt.gone {
				t.Errorf("forgotten %t, %v, want %t", gone, err, tt.gone)
			}
		})
	}
}

func TestARunThatWasNeverSubmittedWasNotForgotten(t *testing.T) {
	s := storetest.NewMemory()
	check(t, store.MarkForgotten(t.Context(), s, time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)))
	_, found, err := store.FindSubmission(t.Context(), s, "r")
	check(t, err)
	gone, err := store.RunForgotten(t.Context(), s, "r")
	check(t, err)
	if found || gone {
		t.Errorf("found %t, forgotten %t", found, gone)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
