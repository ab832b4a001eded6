package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// TestHostileBenchmarksDoNotFindTheStateOfTheirCollector: a benchmark searches for its
// collector's state files while they exist.
func TestHostileBenchmarksDoNotFindTheStateOfTheirCollector(t *testing.T) {
	t.Parallel()
	p := start(t)
	gate := filepath.Join(t.TempDir(), "go-on")
	run := p.submit(script(`echo '{"a": 1}' >>"$BENCHMARK_AI_FILE"
until [ -e ` + gate + ` ]; do sleep 0.05; done
cd "$(dirname "$BENCHMARK_AI_FILE")" && ls -d ./* && [ -z "$BAI_STATE_DIR" ] && [ -z "$(ls -A /bai-state 2>/dev/null)" ]`))
	p.awaitPhase(run, baiv1.Phase_PHASE_RUNNING)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if states, _ := filepath.Glob(filepath.Join(p.dir, "pods", "pods", "*", "volumes", "state", "run", "collect.json")); len(states) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the collector has no state of its own")
		}
	}
	write(t, gate, "")
	if got := p.awaitComplete(run); got.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("ended as %v", got)
	}
	log, _ := p.wantCode(0, "logs", run)
	if !strings.Contains(log, "./output") {
		t.Errorf("it does not see what it has written itself: %s", log)
	}
	for _, name := range []string{"./collect.json", "./series", "./fifo.lines"} {
		if strings.Contains(log, name+"\n") {
			t.Errorf("the benchmark sees %s: %s", name, log)
		}
	}
}
