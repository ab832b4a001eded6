package elastic_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
)

// testResultDocs writes points, also twice, and checks the documents for dashboards.
func testResultDocs(t *testing.T, server *elasticsearch.Server) {
	t.Helper()
	prefix, id := newPrefix(t, server), ulidOf(7)
	s := open(t, server, elastic.Settings{Prefix: prefix})
	run, change := storetest.NewRun(id, time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC))
	run.Labels = map[string]string{store.LabelTask: "training", "version": "v1.2"}
	check(t, s.PutRun(t.Context(), run, change))
	var where store.RunEnvironment
	for _, pod := range []string{"a", "b"} {
		where, _ = where.With(store.PodEnvironment{Origin: storetest.NewOrigin(id, pod), Environment: event.Environment{
			Machine: event.Machine{CPUModel: "EPYC", CPUs: 8, Memory: 64 << 30, GPUs: []event.GPU{{Model: "H200"}, {Model: "H200"}}},
		}})
	}
	check(t, store.Create(t.Context(), s, store.KindEnvironment, id, where))
	all := store.RunPoints{
		PointRun: store.PointRun{Run: id, Namespace: "pets", Task: "training", Time: run.Created, Version: "v1.2", Machine: store.MachineFingerprint(where.Pods)},
		Revision: 1, Points: []store.Summary{
			{Metric: "loss", Unit: "1", Labels: map[string]string{"gpu": "0"}, N: 3, Median: 0.5, Max: store.Float(math.Inf(1)), SD: store.Float(math.NaN()), Interval: &store.Interval{Low: 0.25, High: 0.75}},
			{Metric: "speed", N: 1, Median: 90},
			{Metric: "gone", N: 1, Median: 1},
		},
	}
	check(t, s.PutPoints(t.Context(), all))
	check(t, s.PutPoints(t.Context(), all))
	later := all
	later.Revision, later.Complete, later.Points = 2, true, all.Points[:2]
	check(t, s.PutPoints(t.Context(), later))
	check(t, s.PutPoints(t.Context(), all)) // by who is late
	got := search(t, server.URL+"/"+prefix+"-results-*", "sort=metric.name")
	if len(got) != 2 {
		t.Fatalf("there are %d, want one for each series", len(got))
	}
	first := got[0]
	delete(first, "find")
	delete(first, "doc")
	machine, _ := first["machine"].(map[string]any)
	if f, _ := machine["fingerprint"].(string); len(f) != 32 {
		t.Errorf("the fingerprint is %q", f)
	}
	delete(machine, "fingerprint")
	want := map[string]any{
		"@timestamp": "2026-01-02T03:04:05.000000006Z", "complete": true, "n": 3.0,
		"run":     map[string]any{"id": id, "namespace": "pets", "owner": "ann", "task": "training", "attempt": 1.0, "version": "v1.2"},
		"labels":  map[string]any{"task_name": "training", "version": "v1.2"},
		"machine": map[string]any{"name": "2 × H200, EPYC, 8 CPUs, 64 GiB"},
		"metric":  map[string]any{"name": "loss", "unit": "1", "labels": map[string]any{"gpu": "0"}},
		"value": map[string]any{
			"median": 0.5, "low": 0.25, "high": 0.75, "min": 0.0, "p90": 0.0, "p95": 0.0, "p99": 0.0, "mean": 0.0, "first": 0.0, "last": 0.0,
		},
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
