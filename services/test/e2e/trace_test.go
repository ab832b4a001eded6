package e2e_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/telemetrytest"
	"github.com/benchmark-ai/bai/services/test/testbed/port"
)

// TestOneTraceOfOneRunShowsEveryHop prints it. Two services are processes of their
// own, and the run has data to fetch and to pull.
func TestOneTraceOfOneRunShowsEveryHop(t *testing.T) {
	collector, site, health := telemetrytest.Start(t), newMutableSource(t, "cats"), port.Addr(t)
	traces := fmt.Sprintf("[telemetry]\ntraces = %q\n", collector.URL)
	p := start(t, "--without", "fetcher,metrics-pusher", "--config", writeTemp(t, fmt.Sprintf("health = %q\n%s", health, traces)))
	fetcher := p.join(traces+"[fetcher.sources]\nnetworks = [\"loopback\"]\n", "fetcher")
	indexer := p.join(traces, "metrics-pusher", "index")
	run := p.submit(script(`cat /data/x; echo '{"x": 1}' >>"$BENCHMARK_AI_FILE"`, fmt.Sprintf("[[data.sources]]\nsrc = \"%s/x\"\npath = \"/data/x\"", site.URL)))
	if r := p.awaitComplete(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("ended as %v", r)
	}
	metrics, lag := "", `bai_consumer_lag{group="executor-fetched"` // exists once the group has assigned partitions
	for end := time.Now().Add(time.Minute); !strings.Contains(metrics, lag) && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		metrics = fetch(t, "http://"+health+"/metrics")
	}
	fetcher.Stop(t) // each sends its last spans
	indexer.Stop(t)
	p.stop()
	wantHops(t, collector.Spans(run), run)
	for _, want := range []string{`bai_events_said_total{topic="bai.launched"} `, `bai_events_heard_total{group="executor-fetched",topic="bai.fetched"} `, lag} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

// wantHops checks that spans are one tree, with every step of the run in it: a pod's
// messages follow from the run itself.
func wantHops(t *testing.T, spans []*tracev1.Span, run string) {
	t.Helper()
	hops := map[string]bool{
		"bai says bai.submitted": false, "fetcher handles bai.submitted": false, "gateway handles bai.submitted": false,
		"fetcher says bai.fetched": false, "executor-fetched handles bai.fetched": false,
		"bai says bai.launched": false, "watcher-launched handles bai.launched": false, "gateway handles bai.launched": false, "gateway handles bai.status": false,
		"bai says bai.finished": false, "gateway handles bai.finished": false, "executor-finished handles bai.finished": false,
		"metrics-pusher-metrics handles bai.metrics": false, "metrics-pusher-logs handles bai.logs": false,
	}
	known := map[string]bool{}
	for _, s := range spans {
		known[string(s.GetSpanId())], hops[s.GetName()] = true, true
	}
	for _, s := range spans {
		if id := hex.EncodeToString(s.GetTraceId()); !strings.Contains(kafka.RootTrace(run), id) {
			t.Errorf("%s is of trace %s, want that of the run, %s", s.GetName(), id, kafka.RootTrace(run))
		}
		if first := s.GetName() == "bai says bai.submitted"; !first && !known[string(s.GetParentSpanId())] {
			t.Errorf("nothing tells what %s follows from", s.GetName())
		}
	}
	for name, seen := range hops {
		if !seen {
			t.Errorf("no span %q", name)
		}
	}
	t.Logf("the trace of run %s:\n%s", run, telemetrytest.Tree(spans))
}

// fetch returns the content of a URL.
func fetch(t *testing.T, url string) string {
	t.Helper()
	text, err := tryFetch(url)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func tryFetch(url string) (string, error) {
	c := http.Client{Timeout: 10 * time.Second}
	resp, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, resp.Status, text)
	}
	return string(text), err
}

// readiness waits until the platform is ready, and returns what it says then. It is not while one of its parts tries something again, as
// after a start without its store.
func (p *platform) readiness() (text string) {
	p.t.Helper()
	eventually(p.t, func() (err error) {
		text, err = tryFetch("http://" + p.addr + "/readyz")
		return err
	})
	return text
}
