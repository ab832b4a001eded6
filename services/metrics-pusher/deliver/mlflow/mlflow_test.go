package mlflow_test

import (
	"context"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/post"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver/delivertest"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver/mlflow"
)

// open returns the destination of a server.
func open(t *testing.T, s post.Settings) *mlflow.Server {
	t.Helper()
	d, err := mlflow.New("tracking", mlflow.Settings{Settings: s, Experiment: "speed tests"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

var escape = regexp.MustCompile(":[0-9A-F]{2}")

// nameOf is the name that a key was made of.
func nameOf(t *testing.T, key string) string {
	t.Helper()
	return escape.ReplaceAllStringFunc(key, func(c string) string {
		b, err := hex.DecodeString(c[1:])
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	})
}

// fixture is the destination of a server; runs that are not complete have no rows.
func fixture(s *server) delivertest.Fixture {
	return delivertest.Fixture{
		Open: func(t *testing.T) deliver.Destination {
			t.Helper()
			return open(t, post.Settings{URL: s.URL})
		},
		Rows: func(t *testing.T) []string {
			t.Helper()
			var rows []string
			for _, r := range s.visible() {
				if r.Status == "RUNNING" {
					continue
				}
				for p := range r.Points {
					rows = append(rows, delivertest.Text(nameOf(t, p.Key), p.Value))
				}
			}
			return rows
		},
	}
}

func TestAServer(t *testing.T) {
	delivertest.Run(t, func(t *testing.T) delivertest.Fixture {
		t.Helper()
		return fixture(start(t))
	})
}

func TestAKilledWriterLeavesARunThatTheNextOneCompletes(t *testing.T) {
	s := &server{}
	s.Server = &httptest.Server{URL: os.Getenv("DELIVERTEST_MLFLOW")}
	if s.URL == "" {
		s = start(t)
	}
	delivertest.RunKilled(t, fixture(s), t.Name(), "DELIVERTEST_MLFLOW="+s.URL)
	runs := s.visible()
	if len(runs) != 1 || len(runs[0].Points) != 10_000 || s.made() != 1 {
		t.Errorf("%d runs, %d were made", len(runs), s.made())
	}
}

// example is a delivery with those columns and rows.
func example(columns []deliver.Column, rows ...[]any) deliver.Delivery {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return deliver.Delivery{
		Run: "r1", Columns: columns,
		About: deliver.About{
			Name: "nightly", Namespace: "perf", Owner: "ann", File: "a.toml", Set: "s1", Cell: "size=1K", Outcome: event.Succeeded, Attempt: 2,
			Started: at, Ended: at.Add(time.Minute), Labels: map[string]string{"task_name": "resnet", "example.com/team": "ü\x00"},
		},
		Rows: func(yield func([]any, error) bool) {
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
		},
	}
}

func column(t *testing.T, name, value string) deliver.Column {
	t.Helper()
	v, ok := descriptors.ParseColumnValue(value)
	if !ok {
		t.Fatal(value)
	}
	return deliver.Column{Name: name, Value: v, Number: v.Number()}
}

// only delivers, and returns the only run of the server.
func only(t *testing.T, s *server, d deliver.Delivery) *storedRun {
	t.Helper()
	if err := fixture(s).Open(t).Deliver(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	runs := s.visible()
	if len(runs) != 1 {
		t.Fatalf("%d runs", len(runs))
	}
	return runs[0]
}

// startTime is the time at which the run of example starts, in ms.
const startTime = int64(1767323045000)

// samples is a delivery of samples: with a step, without one, and without a value.
func samples(t *testing.T) deliver.Delivery {
	t.Helper()
	columns := []deliver.Column{
		column(t, "labels", "sample.labels"), column(t, "metric", "sample.metric"), column(t, "run", "run.id"), column(t, "step", "sample.step"),
		column(t, "time", "sample.time"), column(t, "unit", "sample.unit"), column(t, "value", "sample.value"),
	}
	return example(columns,
		[]any{nil, "loss", "r1", 7.0, "2026-01-02T03:04:06.5Z", "nats", 0.5},
		[]any{nil, "loss", "r1", 7.0, "2026-01-02T03:04:06.5Z", "nats", 0.5},
		[]any{nil, "loss", "r1", 8.0, "2026-01-02T03:04:07Z", "nats", nil},
		[]any{`{"gpu":"0"}`, "../x", "r1", nil, "2026-01-02T03:04:08Z", nil, 1.0},
		[]any{`{"gpu":"0"}`, "../x", "r1", nil, "2026-01-02T03:04:08Z", nil, 1.0},
	)
}

// samplePoints are the points of samples.
func samplePoints() map[point]bool {
	const labelled = ":2E:2E:2Fx :7B:22gpu:22:3A:220:22:7D"
	return map[point]bool{
		{"loss", 0.5, startTime + 1500, 7}: true, {labelled, 1, startTime + 3000, 0}: true, {labelled, 1, startTime + 3000, 1}: true,
	}
}

func TestSamplesArePointsWithTheirStepsAndTimes(t *testing.T) {
	r := only(t, start(t), samples(t))
	if diff := cmp.Diff(samplePoints(), r.Points); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"run": "r1", "task_name": "resnet", "example.com/team": "ü\uFFFD"}, r.Params); diff != "" {
		t.Errorf("params (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{
		"bai.run": "r1", "bai.destination": "tracking", "bai.namespace": "perf", "bai.task": "resnet", "bai.outcome": "succeeded", "bai.attempt": "2",
		"bai.set": "s1", "bai.cell": "size=1K", "mlflow.user": "ann", "mlflow.source.name": "a.toml", "mlflow.source.type": "JOB", "unit.loss": "nats",
	}, r.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	if r.Name != "nightly" || r.Status != "FINISHED" || r.Start != startTime || r.End != startTime+60_000 {
		t.Errorf("%+v", r)
	}
}

func TestSummariesArePointsAtTheEndOfTheRun(t *testing.T) {
	const end = int64(1767323105000)
	t.Run("of a row for each metric", func(t *testing.T) {
		columns := []deliver.Column{column(t, "max", "summary.max"), column(t, "metric", "summary.metric"), column(t, "n", "summary.n"), column(t, "try", "run.attempt")}
		r := only(t, start(t), example(columns, []any{2.5, "rate", 3.0, 2.0}, []any{nil, "loss", 0.0, 2.0}))
		if diff := cmp.Diff(map[point]bool{{"rate.max", 2.5, end, 0}: true, {"rate.n", 3, end, 0}: true, {"loss.n", 0, end, 0}: true}, r.Points); diff != "" {
			t.Errorf("points (-want +got):\n%s", diff)
		}
		if r.Params["try"] != "2" {
			t.Errorf("params %v", r.Params)
		}
	})
	t.Run("of one row for the run", func(t *testing.T) {
		columns := []deliver.Column{column(t, "rate", "metric.rate.median"), column(t, "rate_unit", "metric.rate.unit"), column(t, "team", "label.team")}
		d := example(columns, []any{2.5, "1/s", "red"})
		d.About.Outcome = event.Failed
		r := only(t, start(t), d)
		if diff := cmp.Diff(map[point]bool{{"rate", 2.5, end, 0}: true}, r.Points); diff != "" {
			t.Errorf("points (-want +got):\n%s", diff)
		}
		if r.Params["rate_unit"] != "1/s" || r.Params["team"] != "red" || r.Status != "FAILED" {
			t.Errorf("%+v", r)
		}
	})
}

func TestNamesAndValuesThatAreLongFit(t *testing.T) {
	r := only(t, start(t), limits(t))
	if len(r.Points) != 2500 || len(r.Params) != 302 || len(r.Tags) != 11+1200 {
		t.Errorf("%d points, %d params, %d tags", len(r.Points), len(r.Params), len(r.Tags))
	}
}

func TestRunsThatSeveralWritersMadeBecomeOne(t *testing.T) {
	s := start(t)
	for range 5 {
		s.runs = append(s.runs, &storedRun{
			ID: fmt.Sprintf("%032x", 9-len(s.runs)), Experiment: "1", Status: "RUNNING", Params: map[string]string{},
			Tags: map[string]string{"bai.run": "r1", "bai.destination": "tracking"}, Points: map[point]bool{},
		})
	}
	s.runs[2].Status = "FINISHED"
	s.experiments["speed tests"] = "1"
	r := only(t, s, delivertest.Rows("r1", 3))
	if r.ID != s.runs[4].ID || r.Status != "FINISHED" || len(r.Points) != 3 {
		t.Errorf("%+v", r)
	}
}

func TestADeletedExperimentIsRefused(t *testing.T) {
	s := start(t)
	s.experiments["speed tests"], s.gone["speed tests"] = "1", true
	err := open(t, post.Settings{URL: s.URL}).Deliver(t.Context(), delivertest.Rows("r1", 1))
	if err == nil || err.Error() != `the experiment "speed tests" is deleted: restore it in MLflow, or name another in the settings` {
		t.Errorf("got %v", err)
	}
}

func TestAnErrorHasNeitherAddressNorSecret(t *testing.T) {
	answer := func(status int, text string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Location", "http://127.0.0.1:1/s3cret")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
			return true
		}
	}
	for name, tt := range map[string]struct {
		before func(w http.ResponseWriter, r *http.Request) bool
		want   string
	}{
		"no credentials":       {answer(401, "no s3cret"), "MLflow does not let the platform in with the credentials that it was given (401)"},
		"too many requests":    {answer(429, "s3cret"), "MLflow is busy (429)"},
		"away for a while":     {answer(503, "s3cret"), "MLflow is busy (503)"},
		"a redirect":           {answer(302, ""), "MLflow answers with a redirect (302), which the platform does not follow: the settings need the final address"},
		"a failure within":     {answer(500, `{"error_code": "INTERNAL_ERROR", "message": "cannot connect to 127.0.0.1 as s3cret"}`), "MLflow answers 500 Internal Server Error"},
		"a request it refuses": {answer(400, `{"error_code": "INVALID_PARAMETER_VALUE", "message": "too long"}`), "MLflow refused: too long (INVALID_PARAMETER_VALUE)"},
		"another server":       {answer(200, "<html>s3cret"), "what answers is not MLflow"},
		"an endless answer":    {answer(200, strings.Repeat("x", 65<<20)), "MLflow answers more than 64 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			s.before.Store(&tt.before)
			if err := open(t, post.Settings{URL: s.URL}).Deliver(t.Context(), delivertest.Rows("r1", 1)); err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		err := open(t, post.Settings{URL: "http://127.0.0.1:1"}).Deliver(t.Context(), delivertest.Rows("r1", 1))
		if err == nil || err.Error() != "MLflow cannot be reached: connection refused" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no time is left", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := open(t, post.Settings{URL: start(t).URL}).Deliver(ctx, delivertest.Rows("r1", 1))
		if err == nil || err.Error() != "MLflow did not answer in time" {
			t.Errorf("got %v", err)
		}
	})
}

func TestCredentialsAreReadForEachRequest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	s := start(t)
	got := ""
	before := func(_ http.ResponseWriter, r *http.Request) bool {
		got = r.Header.Get("Authorization")
		return false
	}
	s.before.Store(&before)
	d := open(t, post.Settings{URL: s.URL, TokenFile: file})
	for _, token := range []string{"one", "two"} {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := d.Deliver(t.Context(), delivertest.Rows(token, 1)); err != nil || got != "Bearer "+token {
			t.Errorf("%q, %v", got, err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := d.Deliver(t.Context(), delivertest.Rows("r3", 1)); err == nil || strings.Contains(err.Error(), file) {
		t.Errorf("got %v", err)
	}
}

func TestTheServersCertificateIsChecked(t *testing.T) {
	s := start(t)
	secure := httptest.NewTLSServer(s)
	defer secure.Close()
	err := open(t, post.Settings{URL: secure.URL}).Deliver(t.Context(), delivertest.Rows("r1", 1))
	if err == nil || err.Error() != "the certificate of MLflow is not one that the platform trusts" {
		t.Errorf("got %v", err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(t, post.Settings{URL: secure.URL, CAFile: ca}).Deliver(t.Context(), delivertest.Rows("r1", 1)); err != nil {
		t.Error(err)
	}
}

func TestFaultySettingsAreNamed(t *testing.T) {
	for want, s := range map[string]mlflow.Settings{
		"": {Settings: post.Settings{URL: "https://mlflow:5000"}, Experiment: "x"},
		`d.experiment: "", want the name of an experiment of at most 500 bytes`: {Settings: post.Settings{URL: "https://mlflow:5000"}},
		"d.url: want a URL such as https://example.com/receive":                 {Experiment: "x"},
	} {
		got := ""
		if err := s.Validate("d"); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestADeliveryThatIsKilledAmongItsRequests kills a process whenever the server has taken a further batch of it.
func TestADeliveryThatIsKilledAmongItsRequests(t *testing.T) {
	if url := os.Getenv("DELIVERTEST_MLFLOW_HALF"); url != "" {
		t.Fatalf("the process lives: %v", open(t, post.Settings{URL: url}).Deliver(t.Context(), delivertest.Rows("r1", 3500)))
	}
	s := start(t)
	for _, at := range []struct {
		path string
		nth  int
	}{{"runs/create", 1}, {"runs/log-batch", 1}, {"runs/log-batch", 3}, {"runs/update", 1}} {
		killAt(t, s, at.path, at.nth)
	}
	s.before.Store(nil)
	if err := open(t, post.Settings{URL: s.URL}).Deliver(t.Context(), delivertest.Rows("r1", 3500)); err != nil {
		t.Fatal(err)
	}
	if r := s.visible(); len(r) != 1 || r[0].Status != "FINISHED" || len(r[0].Points) != 3500 || s.made() != 1 {
		t.Errorf("%d runs, %d made", len(r), s.made())
	}
}

// killAt starts a delivery in another process, and kills that when it sends the nth request of a path.
func killAt(t *testing.T, s *server, path string, nth int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestADeliveryThatIsKilledAmongItsRequests$") //nolint:gosec // this test
	c.Env = append(os.Environ(), "DELIVERTEST_MLFLOW_HALF="+s.URL)
	var n atomic.Int32
	started := make(chan struct{})
	before := func(_ http.ResponseWriter, r *http.Request) bool {
		<-started
		if strings.HasSuffix(r.URL.Path, path) && int(n.Add(1)) == nth {
			_ = c.Process.Kill() // what it waits for shows whether it was
		}
		return false
	}
	s.before.Store(&before)
	err := c.Start()
	close(started)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // the exit code is looked at
	if c.ProcessState.ExitCode() != -1 {
		t.Fatalf("the process was not killed at the %d. %s: %v", nth, path, c.ProcessState)
	}
}
