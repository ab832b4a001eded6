package api_test

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

const finishedRun = "01k8h4fzqh3v7x9y2m5n8p0r4t"

// putFinishedSecondAttempt stores a run that finished in its second attempt.
func (w *fixture) putFinishedSecondAttempt(t *testing.T) {
	t.Helper()
	run, change := storetest.NewRun(finishedRun, time.Unix(1, 0).UTC())
	run.Descriptor, run.Phase, run.Outcome, run.Attempt = valid, event.PhaseFinished, event.Succeeded, 2
	run.Data = []event.Data{{Source: "https://example.com/cats", Path: "/cats", SHA256: "abc", Size: 9}}
	if err := w.store.PutRun(t.Context(), run, change); err != nil {
		t.Fatal(err)
	}
}

func TestWhatARunCameToIsToldOnceItIsComputed(t *testing.T) {
	w := newFixture(t, options{})
	w.putFinishedSecondAttempt(t)
	ask := func() *baiv1.GetSummariesResponse {
		t.Helper()
		got, err := baiv1.NewResultServiceClient(w.conn).GetSummaries(t.Context(), &baiv1.GetSummariesRequest{Run: finishedRun})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	none := &baiv1.GetSummariesResponse{RunId: finishedRun, Attempt: 2, Complete: true}
	if diff := cmp.Diff(none, ask(), protocmp.Transform()); diff != "" {
		t.Errorf("of a run without samples (-want +got):\n%s", diff)
	}
	o := storetest.NewOrigin(finishedRun, "p")
	if err := w.store.AppendSamples(t.Context(), []store.Samples{{Origin: o, Samples: []event.Sample{storetest.NewSample(1, "loss", 2)}}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&baiv1.GetSummariesResponse{RunId: finishedRun, Attempt: 2, Pending: true}, ask(), protocmp.Transform()); diff != "" {
		t.Errorf("before it is computed (-want +got):\n%s", diff)
	}
	nan := store.Float(math.NaN())
	err := store.Create(t.Context(), w.store, store.KindSummary, finishedRun, store.Summaries{
		Run: finishedRun, Attempt: 2, Complete: true, Samples: 7, Method: "m", Notes: []string{"n"}, Summaries: []store.Summary{{
			Metric: "loss", Unit: "1", Labels: map[string]string{"a": "b"}, N: 6, NotNumbers: 1, Min: 1, Max: 2, Median: 3, P90: 4, P95: 5, P99: 6, Mean: 7, SD: nan,
			First: 8, Last: 9, Interval: &store.Interval{Low: 10, High: 11, Level: 0.96875},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &baiv1.GetSummariesResponse{
		RunId: finishedRun, Attempt: 2, Complete: true, Samples: 7, Method: "m", Notes: []string{"n"}, Summaries: []*baiv1.MetricSummary{{
			Metric: "loss", Unit: "1", Labels: map[string]string{"a": "b"}, N: 6, NotNumbers: 1, Min: 1, Max: 2, Median: 3, P90: 4, P95: 5, P99: 6, Mean: 7, Sd: math.NaN(),
			First: 8, Last: 9, Interval: &baiv1.Interval{Low: 10, High: 11, Level: 0.96875},
		}},
	}
	if diff := cmp.Diff(want, ask(), protocmp.Transform(), cmp.Comparer(func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhereARunRanIsToldOfItsLastAttempt(t *testing.T) {
	w := newFixture(t, options{})
	w.putFinishedSecondAttempt(t)
	var where store.RunEnvironment
	for attempt := range 2 {
		o := storetest.NewOrigin(finishedRun, "p")
		o.Attempt = attempt + 1
		where, _ = where.With(store.PodEnvironment{Origin: o, Environment: event.Environment{
			Platform: "v1", Tools: map[string]string{"gcc": "12"}, Unknown: []string{"u"},
			Machine: event.Machine{CPUModel: "EPYC", CPUs: 8, GPUs: []event.GPU{{Model: "H200", Memory: 5, UUID: "G"}}},
		}})
	}
	if err := store.Create(t.Context(), w.store, store.KindEnvironment, finishedRun, where); err != nil {
		t.Fatal(err)
	}
	got, err := baiv1.NewResultServiceClient(w.conn).GetEnvironment(t.Context(), &baiv1.GetEnvironmentRequest{Run: finishedRun})
	if err != nil {
		t.Fatal(err)
	}
	e := got.GetEnvironment()
	sum := sha256.Sum256([]byte(valid))
	want := &baiv1.Environment{
		Fingerprint: store.Fingerprint(e.GetImage(), where.Attempt(2)), DescriptorSha256: hex.EncodeToString(sum[:]), Image: e.GetImage(),
		Data: []*baiv1.DataSet{{Source: "https://example.com/cats", Path: "/cats", Sha256: "abc", Size: 9}},
		Pods: []*baiv1.PodEnvironment{{
			Role: "benchmark", Pod: "p", Attempt: 2, PlatformVersion: "v1", Tools: map[string]string{"gcc": "12"}, Unknown: []string{"u"},
			Machine: &baiv1.Machine{CpuModel: "EPYC", Cpus: 8, Gpus: []*baiv1.Gpu{{Model: "H200", Memory: 5, Uuid: "G"}}},
		}},
	}
	if diff := cmp.Diff(want, e, protocmp.Transform()); diff != "" || e.GetImage() == "" || e.GetFingerprint() == "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestResultsAreOfRunsThatThereAre(t *testing.T) {
	w := newFixture(t, options{})
	_, err := baiv1.NewResultServiceClient(w.conn).GetSummaries(t.Context(), &baiv1.GetSummariesRequest{Run: finishedRun})
	_, err2 := baiv1.NewResultServiceClient(w.conn).GetEnvironment(t.Context(), &baiv1.GetEnvironmentRequest{})
	if status.Code(err) != codes.NotFound || status.Code(err2) != codes.InvalidArgument {
		t.Errorf("%v, and %v", err, err2)
	}
}
