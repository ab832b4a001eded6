package incident_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/incident"
)

func TestTheKeysOfTheIndexAreInOrderOfTimeTheNewestFirst(t *testing.T) {
	at := func(y int) time.Time { return time.Date(y, 3, 1, 0, 0, 0, 1, time.UTC) }
	want := []string{
		incident.IndexKey("a", at(2200), "y"), incident.IndexKey("a", at(2026).Add(1), "z"), incident.IndexKey("a", at(2026), "x"), incident.IndexKey("a", at(2026), "y"),
		incident.IndexKey("a", at(1971), "w"), incident.IndexKey("a", time.Unix(-5, 0), "v"), incident.IndexKey("b", at(2100), "u"),
	}
	got := slices.Sorted(slices.Values(want))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
