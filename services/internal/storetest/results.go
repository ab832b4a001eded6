package storetest

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// testResults checks that summaries and environments of runs are read as they were written, with any numbers and any number of series.
func testResults(t *testing.T, s Store) {
	t.Helper()
	inf, nan := store.Float(math.Inf(1)), store.Float(math.NaN())
	all := store.Summaries{Run: "r", Attempt: 2, Complete: true, Samples: 7, Method: "as it is", Notes: []string{"<none> & \u2028"}}
	for range 1000 {
		all.Summaries = append(all.Summaries, store.Summary{
			Metric: "loss", Unit: "%", Labels: map[string]string{"gpu": strings.Repeat("0", 100)}, N: 5, NotNumbers: 1,
			Min: -inf, Max: inf, Median: 1.0 / 3, P90: 1e300, P95: 5e-324, P99: nan, Mean: nan, SD: nan, First: -0.5, Last: 1e21,
			Interval: &store.Interval{Low: -inf, High: 0.1, Level: 0.96875},
		})
	}
	must(t, store.Create(t.Context(), s, store.KindSummary, "r", all))
	got, version, err := store.Get[store.Summaries](t.Context(), s, store.KindSummary, "r")
	must(t, err)
	if diff := cmp.Diff(all, got, cmp.Comparer(sameFloat)); diff != "" || version != 1 {
		t.Errorf("version %d; (-want +got):\n%s", version, diff)
	}

	var where store.RunEnvironment
	for pod := range 100 {
		o := NewOrigin("r", strings.Repeat("p", pod+1))
		o.Index = pod
		where, _ = where.With(store.PodEnvironment{Origin: o, Environment: event.Environment{
			Machine: event.Machine{CPUModel: "a", CPULimit: 0.5, GPUs: []event.GPU{{Model: "g"}}},
			Tools:   map[string]string{"gcc": "1"}, Unknown: []string{"x"},
		}})
	}
	must(t, store.Create(t.Context(), s, store.KindEnvironment, "r", where))
	back, _, err := store.Get[store.RunEnvironment](t.Context(), s, store.KindEnvironment, "r")
	must(t, err)
	if diff := cmp.Diff(where, back); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
