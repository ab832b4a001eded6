package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
	"github.com/benchmark-ai/bai/services/test/testbed/port"
)

// instrumented is a program that serves numbers for Prometheus, and sends some by
// OpenTelemetry's protocol, as an instrumented program does.
const instrumented = `exec python3 - <<'EOF'
import http.server, json, os, threading, time, urllib.request

class Page(http.server.BaseHTTPRequestHandler):
    reads = 0
    def do_GET(self):
        Page.reads += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'# TYPE app_temperature_celsius gauge\napp_temperature_celsius{room="1"} 21.5\nother 1\n')
    def log_message(self, *args): pass

page = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Page)
threading.Thread(target=page.serve_forever, daemon=True).start()

assert os.environ["OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"] == "http/protobuf"
now = time.time_ns()
for i in range(3):
    body = {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "app.load", "unit": "1", "gauge": {"dataPoints": [
        {"timeUnixNano": str(now + i), "asDouble": i + 0.5, "attributes": [{"key": "core", "value": {"intValue": "3"}}]}]}}]}]}]}
    for again in range(2):
        request = urllib.request.Request(os.environ["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"], json.dumps(body).encode(), {"Content-Type": "application/json"})
        assert urllib.request.urlopen(request).status == 200
end = time.time() + 60
while Page.reads < 3 and time.time() < end: time.sleep(0.05)
print("epoch 1\nloss 0.5\nepoch 2\nloss 0.25")
EOF
`

// TestAnInstrumentedProgramNeedsNoChange runs two such at a time, on one machine.
func TestAnInstrumentedProgramNeedsNoChange(t *testing.T) {
	t.Parallel()
	tooltest.Program(t, "python3", "python3")
	p := start(t)
	var runs []string
	for range 2 {
		number := fmt.Sprint(port.ForTest(t, 1)[0])
		runs = append(runs, p.submit(script(instrumented, fmt.Sprintf(`[env.vars]
PORT = %q

[output]
system = false
otlp = true
prometheus = "http://127.0.0.1:%s/metrics"
prometheus_names = "^app_"

[[output.metrics]]
name = "loss"
units = "1"
parser = "blocks"
block = '^epoch'
pattern = '(?s)epoch (?P<step>\d+).*loss (?P<value>\S+)'`, number, number))))
	}
	for _, run := range runs {
		r := p.awaitComplete(run)
		if r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
			t.Fatalf("ended as %v\n%s", r, strings.Join(p.lines(run), "\n"))
		}
		got := p.samples(run)
		if n := len(got["app_temperature_celsius"]); n < 2 {
			t.Errorf("%d samples of the page", n)
		}
		delete(got, "app_temperature_celsius")
		if diff := cmp.Diff(map[string][]float64{"app.load": {0.5, 1.5, 2.5}, "loss": {0.5, 0.25}}, got); diff != "" {
			t.Errorf("samples (-want +got):\n%s", diff)
		}
		if c := r.GetCompleteness(); c.GetSystemSamples() != 0 || len(c.GetNotes()) > 0 {
			t.Errorf("%v", c)
		}
	}
}

// TestAnInstrumentedProgramNeedsNoChangeInARunOfSeveralPods: its pod has a network of
// its own, in which the collector is not, and two such runs have one port.
func TestAnInstrumentedProgramNeedsNoChangeInARunOfSeveralPods(t *testing.T) {
	t.Parallel()
	requirePrograms(t, map[string]string{"python3": "python3"})
	p := start(t, "--slots", "2")
	descriptor := strings.Replace(script(instrumented, `[env.vars]
PORT = "9102"

[output]
system = false
otlp = true
prometheus = "http://127.0.0.1:9102/metrics"
prometheus_names = "^app_"
metrics = []

[server.hardware]
instance_type = "t3.small"
[server.env]
docker_image = "debian:12-slim"
ports = [8080]
start_command = "python3 -m http.server 8080"
[server.env.readiness_probe]
path = "/"
port = 8080
period_seconds = 1`), "[env]\n", "strategy = \"inference\"\n[env]\n", 1)
	for _, run := range []string{p.submit(descriptor), p.submit(descriptor)} {
		r := p.awaitComplete(run)
		if r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
			t.Fatalf("ended as %v\n%s", r, strings.Join(p.lines(run), "\n"))
		}
		got := p.samples(run)
		if n := len(got["app_temperature_celsius"]); n < 2 {
			t.Errorf("%d samples of the page", n)
		}
		if diff := cmp.Diff([]float64{0.5, 1.5, 2.5}, got["app.load"]); diff != "" {
			t.Errorf("samples (-want +got):\n%s", diff)
		}
		if c := r.GetCompleteness(); c.GetDropped() != 0 {
			t.Errorf("%v", c)
		}
	}
}
