package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
	"github.com/benchmark-ai/bai/services/test/testbed/kafka"
)

// TestAPlatformOnRealServersDoesTheSame runs a benchmark on real Kafka and
// Elasticsearch, kills the platform in the midst of another, and finds both.
func TestAPlatformOnRealServersDoesTheSame(t *testing.T) {
	brokers, store := kafka.Start(t), elasticsearch.Start(t)
	file := filepath.Join(t.TempDir(), "bai.toml")
	text := fmt.Sprintf("[kafka]\nsession = \"1s\"\ntopics = { partitions = 2, replication = 1 }\n[elasticsearch]\nprefix = \"e2e%d\"\nrefresh = \"100ms\"\n", time.Now().UnixNano())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "--config", file, "--kafka", brokers.Addr, "--elasticsearch", store.URL, "--slots", "2")
	counts := script(`for i in 1 2 3; do echo "{\"count\": $i}" >>"$BENCHMARK_AI_FILE"; echo "speed=$((i * 10))"; done`,
		"[[output.metrics]]", `name = "speed"`, `units = "1/s"`, `pattern = 'speed=(\d+)'`)
	first := p.submit(counts)
	p.complete(first)
	waits := filepath.Join(t.TempDir(), "go-on")
	second := p.submit(script("echo n=1; until [ -e " + waits + " ]; do sleep 0.1; done; echo n=2"))
	p.reach(second, baiv1.Phase_PHASE_RUNNING)
	p.kill()
	if err := os.WriteFile(waits, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.begin()
	if r := p.complete(second); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("the run during which the platform was killed: %s %s", r.GetOutcome(), r.GetMessage())
	}
	if d := cmp.Diff([]string{"out n=1", "out n=2"}, p.lines(second)); d != "" {
		t.Error(d)
	}
	got := p.samples(first)
	if d := cmp.Diff(map[string][]float64{"count": {1, 2, 3}, "speed": {10, 20, 30}}, map[string][]float64{"count": got["count"], "speed": got["speed"]}); d != "" {
		t.Error(d)
	}
}
