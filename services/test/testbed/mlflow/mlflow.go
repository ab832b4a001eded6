// Package mlflow gives a test a real tracking server of MLflow, with a database of SQLite. Its program comes from PyPI the first time,
// which takes some minutes. It is started only where BAI_MLFLOW is 1; else the test is skipped.
package mlflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/test/testbed/kit"
	"github.com/benchmark-ai/bai/services/test/testbed/port"
)

// version is that of MLflow.
const version = "3.17.2"

// startup is how long the server may take to answer: it makes its tables first.
const startup = 10 * time.Minute

// Server is a server that a test may use alone.
type Server struct{ URL string }

// Start returns a server that answers, for as long as the test lasts, or skips the test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	if os.Getenv("BAI_MLFLOW") != "1" {
		tb.Skip("needs a server of MLflow: set BAI_MLFLOW=1 to have one installed from PyPI and started")
	}
	python, err := kit.Python(tb.Context(), "mlflow", version)
	if err != nil {
		tb.Fatal(err)
	}
	dir, at := tb.TempDir(), port.ForTest(tb, 1)[0]
	cmd := exec.Command(python, "-m", "mlflow", "server", "--backend-store-uri", "sqlite:///"+filepath.Join(dir, "mlflow.db"), //nolint:noctx // it ends with the test
		// several are killed if they do not answer each other within seconds
		"--artifacts-destination", filepath.Join(dir, "artifacts"), "--host", "127.0.0.1", "--port", strconv.Itoa(at), "--workers", "1")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, tb.Output(), tb.Output()
	cmd.Env = append(os.Environ(), "MLFLOW_DISABLE_TELEMETRY=true", "DO_NOT_TRACK=true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its workers end with it
	if err := kit.Start(cmd); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
		_ = cmd.Wait()                                      // by our own signal
	})
	s := &Server{URL: fmt.Sprintf("http://127.0.0.1:%d", at)}
	s.wait(tb)
	return s
}

// wait waits until the server answers.
func (s *Server) wait(tb testing.TB) {
	tb.Helper()
	end := time.Now().Add(startup)
	for every := time.Tick(200 * time.Millisecond); ; <-every {
		resp, err := http.Get(s.URL + "/health") //nolint:noctx // on loopback
		if err == nil {
			err = resp.Body.Close()
		}
		if err == nil && resp.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(end) {
			tb.Fatalf("MLflow does not answer: %v", err)
		}
	}
}

// TrackedRun is a run of an experiment.
type TrackedRun struct {
	ID, Name, Status string

	Params, Tags map[string]string
	Points       []Point // of all metrics
}

// Point is a point of a metric.
type Point struct {
	Key       string
	Value     float64
	Timestamp int64 // in ms
	Step      int64
}

// Runs returns the runs of an experiment that are not deleted; none if there is no such experiment.
func (s *Server) Runs(tb testing.TB, experiment string) []TrackedRun {
	tb.Helper()
	var found struct {
		Experiment struct {
			ID string `json:"experiment_id"`
		}
	}
	if !s.call(tb, "experiments/get-by-name?experiment_name="+url.QueryEscape(experiment), "", &found) {
		return nil
	}
	var out struct {
		Runs []struct {
			Info struct {
				ID     string `json:"run_id"`
				Name   string `json:"run_name"`
				Status string
			}
			Data struct {
				Params, Tags []struct{ Key, Value string }
				Metrics      []Point
			}
		}
	}
	s.call(tb, "runs/search", `{"experiment_ids": ["`+found.Experiment.ID+`"], "max_results": 1000}`, &out)
	all := make([]TrackedRun, 0, len(out.Runs))
	for _, r := range out.Runs {
		run := TrackedRun{ID: r.Info.ID, Name: r.Info.Name, Status: r.Info.Status, Params: map[string]string{}, Tags: map[string]string{}}
		for _, p := range r.Data.Params {
			run.Params[p.Key] = p.Value
		}
		for _, t := range r.Data.Tags {
			run.Tags[t.Key] = t.Value
		}
		for _, m := range r.Data.Metrics {
			run.Points = append(run.Points, s.history(tb, r.Info.ID, m.Key)...)
		}
		all = append(all, run)
	}
	return all
}

// history returns all points of a metric.
func (s *Server) history(tb testing.TB, run, key string) []Point {
	tb.Helper()
	var out struct{ Metrics []Point }
	s.call(tb, "metrics/get-history?run_id="+run+"&metric_key="+url.QueryEscape(key), "", &out)
	return out.Metrics
}

// call reads an answer, and reports whether there is what was asked for.
func (s *Server) call(tb testing.TB, path, body string, out any) bool {
	tb.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(tb.Context(), method, s.URL+"/api/2.0/mlflow/"+path, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	err = json.NewDecoder(resp.Body).Decode(out)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		tb.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNotFound {
		tb.Fatalf("MLflow answers %s to %s", resp.Status, path)
	}
	return resp.StatusCode == http.StatusOK
}
