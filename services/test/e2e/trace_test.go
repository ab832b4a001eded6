package e2e_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/telemetrytest"
)

// TestOneTraceOfOneRunShowsEveryHop prints it.
func TestOneTraceOfOneRunShowsEveryHop(t *testing.T) {
	collector := telemetrytest.Start(t)
	health := freeAddr(t)
	file := filepath.Join(t.TempDir(), "bai.toml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "health = %q\n[telemetry]\ntraces = %q\n", health, collector.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "--config", file)
	run := p.submit(script("echo n=1"))
	p.complete(run)
	metrics := fetch(t, "http://"+health+"/metrics")
	p.stop() // sends the last spans
	hops := map[string]bool{
		"bai says bai.submitted": false, "fetcher handles bai.submitted": false, "executor-fetched handles bai.fetched": false,
		"bai says bai.launched": false, "watcher-launched handles bai.launched": false, "bai says bai.finished": false,
		"gateway handles bai.finished": false, "executor-finished handles bai.finished": false,
		"metrics-pusher-metrics handles bai.metrics": false, "metrics-pusher-logs handles bai.logs": false,
	}
	spans := collector.Spans(run)
	for _, s := range spans {
		hops[s.GetName()] = true
		if id := hex.EncodeToString(s.GetTraceId()); !strings.Contains(kafka.RootTrace(run), id) {
			t.Errorf("%s is of trace %s, want that of the run, %s", s.GetName(), id, kafka.RootTrace(run))
		}
	}
	for name, seen := range hops {
		if !seen {
			t.Errorf("no span %q", name)
		}
	}
	t.Logf("the trace of run %s:\n%s", run, telemetrytest.Tree(spans))
	for _, want := range []string{`bai_events_said_total{topic="bai.launched"} 1`, `bai_events_heard_total{group="fetcher",topic="bai.submitted"} 1`, `bai_consumer_lag{group="fetcher"`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

// fetch returns what is at a URL.
func fetch(t *testing.T, url string) string {
	t.Helper()
	c := http.Client{Timeout: 10 * time.Second}
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
	return string(text)
}
