package mlflow_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/post"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver/delivertest"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver/mlflow"
	tracking "github.com/benchmark-ai/bai/services/test/testbed/mlflow"
)

// realFixture is the destination of an experiment of a real server.
func realFixture(s *tracking.Server, experiment string) delivertest.Fixture {
	return delivertest.Fixture{
		Open: func(t *testing.T) deliver.Destination {
			t.Helper()
			d, err := mlflow.New("tracking", mlflow.Settings{Settings: post.Settings{URL: s.URL}, Experiment: experiment})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			return d
		},
		Rows: func(t *testing.T) []string {
			t.Helper()
			var rows []string
			for _, r := range s.Runs(t, experiment) {
				if r.Status == "RUNNING" {
					continue
				}
				for _, p := range r.Points {
					rows = append(rows, delivertest.Text(nameOf(t, p.Key), p.Value))
				}
			}
			return rows
		},
	}
}

// TestTheRealServer runs the suite against MLflow's own server, and kills writers of it.
func TestTheRealServer(t *testing.T) {
	if url := os.Getenv("DELIVERTEST_MLFLOW_REAL"); url != "" { // the process that is killed
		delivertest.RunKilled(t, realFixture(&tracking.Server{URL: url}, "killed"), "TestTheRealServer")
		return
	}
	s := tracking.Start(t)
	n := 0
	delivertest.Run(t, func(t *testing.T) delivertest.Fixture {
		t.Helper()
		n++
		return realFixture(s, fmt.Sprint("suite ", n))
	})
	t.Run("a killed writer", func(t *testing.T) {
		delivertest.RunKilled(t, realFixture(s, "killed"), "TestTheRealServer", "DELIVERTEST_MLFLOW_REAL="+s.URL)
	})
	t.Run("names and values at the limits", func(t *testing.T) {
		r := onlyReal(t, s, "limits", limits(t))
		if len(r.Points) != 2500 || len(r.Params) != 302 || len(r.Tags) < 11+1200 || r.Status != "FINISHED" {
			t.Errorf("%d points, %d params, %d tags, %s", len(r.Points), len(r.Params), len(r.Tags), r.Status)
		}
	})
	t.Run("samples with steps and times", func(t *testing.T) {
		r := onlyReal(t, s, "samples", samples(t))
		got := map[point]bool{}
		for _, p := range r.Points {
			got[point(p)] = true
		}
		if diff := cmp.Diff(samplePoints(), got); diff != "" {
			t.Errorf("points (-want +got):\n%s", diff)
		}
		if what := r.Tags["bai.run"] + " " + r.Name + " " + r.Tags["bai.namespace"] + " " + r.Params["task_name"]; what != "r1 nightly perf resnet" {
			t.Errorf("got %q", what)
		}
	})
}

// onlyReal delivers twice, and returns the only run of the experiment.
func onlyReal(t *testing.T, s *tracking.Server, experiment string, d deliver.Delivery) tracking.TrackedRun {
	t.Helper()
	for range 2 {
		if err := realFixture(s, experiment).Open(t).Deliver(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	runs := s.Runs(t, experiment)
	if len(runs) != 1 {
		t.Fatalf("%d runs", len(runs))
	}
	return runs[0]
}

// limits is a delivery whose names and values are as long as MLflow allows, or longer.
func limits(t *testing.T) deliver.Delivery {
	t.Helper()
	d := example([]deliver.Column{column(t, "metric", "sample.metric"), column(t, "unit", "sample.unit"), column(t, "value", "sample.value")})
	for i := range 300 {
		d.About.Labels[fmt.Sprintf("%03d%s", i, strings.Repeat("k", 300))] = strings.Repeat("\x01", 9000)
	}
	d.Rows = func(yield func([]any, error) bool) {
		for i := range 2500 {
			if !yield([]any{fmt.Sprint(strings.Repeat("/é", 300), i%1200), strings.Repeat("u", 9000), float64(i)}, nil) {
				return
			}
		}
	}
	return d
}
