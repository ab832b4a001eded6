package elastic_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
)

// testIncidentRecords writes records of an incident in some order, and checks what is found.
func testIncidentRecords(t *testing.T, server *elasticsearch.Server) {
	t.Helper()
	prefix, opened := newPrefix(t, server), time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	s := open(t, server, elastic.Settings{Prefix: prefix})
	magnitude := store.Float(-0.1)
	r := store.IncidentRecord{
		ID: "i1", Version: 1, Namespace: "pets", Task: "rates", Metric: "rate", Unit: "B/s", Labels: map[string]string{"level": "9"}, When: "regression", State: "firing",
		Cause: "regression", Kind: "step", Direction: "down", Group: "g", Message: "rate fell", Notify: []string{"perf"}, Before: 100, After: store.Float(math.NaN()),
		Magnitude: &magnitude, GoodRun: "r1", GoodVersion: "v1", BadRun: "r2", BadVersion: "v2", Opened: opened, Since: opened, Updated: opened,
	}
	ended := r
	ended.Version, ended.State, ended.Over, ended.AckedBy, ended.Since = 2, "resolved", true, "ann", opened.Add(time.Minute)
	other := r
	other.ID = "i2"
	for _, one := range []store.IncidentRecord{r, ended, ended, r, other} { // the first one also late
		check(t, s.PutIncident(t.Context(), one))
	}
	check(t, s.DeleteIncident(t.Context(), "pets", "i2"))
	check(t, s.DeleteIncident(t.Context(), "pets", "i2"))
	got := search(t, server.URL+"/"+prefix+"-incidents", "")
	if len(got) != 1 {
		t.Fatalf("there are %d, want one for each incident", len(got))
	}
	want := map[string]any{
		"@timestamp": "2026-01-02T03:04:05.000000006Z",
		"incident": map[string]any{
			"id": "i1", "state": "resolved", "over": true, "silent": false, "when": "regression", "cause": "regression", "kind": "step", "direction": "down", "group": "g",
			"message": "rate fell", "notify": []any{"perf"}, "acked_by": "ann", "since": "2026-01-02T03:05:05.000Z", "updated": "2026-01-02T03:04:05.000Z", "lasted": 60.0,
		},
		"run": map[string]any{"id": "r2", "namespace": "pets", "task": "rates", "version": "v2"}, "good": map[string]any{"run": "r1", "version": "v1"},
		"metric": map[string]any{"name": "rate", "unit": "B/s"}, "labels": map[string]any{"level": "9"}, "value": map[string]any{"before": 100.0, "magnitude": -0.1},
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
