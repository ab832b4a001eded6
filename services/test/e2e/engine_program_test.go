package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

// A run on an engine that is a program begins once, though the program and the platform are killed meanwhile, and its lines, metrics and
// parameters are those of any other.
func TestARunOnAProgramBeginsOnceWhenAllAreKilled(t *testing.T) {
	t.Parallel()
	python := tooltest.Program(t, "python3", "python3")
	engine, err := filepath.Abs("../../../sample-benchmarks/engine/engine.py")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	settings, marks, gate, params := filepath.Join(dir, "settings.toml"), filepath.Join(dir, "marks"), filepath.Join(dir, "gate"), filepath.Join(dir, "params")
	// The program's last request for a start is kept, as an engine of one's own would read it.
	wrapper := fmt.Sprintf(`tee -a %s | exec %s %s --dir %s -- sh -s`, params, python, engine, filepath.Join(dir, "far"))
	text := fmt.Sprintf("[engines.far]\nkind = \"exec\"\ncommand = [\"sh\", \"-c\", %q]\n", wrapper)
	write(t, settings, text)
	p := start(t, "--config", settings)
	descriptor := script(fmt.Sprintf("echo begun >> %s\nuntil [ -e %s ]; do sleep 0.05; done\necho speed=42\nexit 3", marks, gate),
		"[custom_params]", `region = "eu"`, "[custom_params.hyper_params]", "depth = 3", "[output]", "[[output.metrics]]", `name = "speed"`, `units = "MB/s"`, `pattern = 'speed=(\d+)'`)
	run := p.submit(strings.Replace(descriptor, "[info]", "[info]\nexecution_engine = \"far\"", 1))
	p.awaitPhase(run, baiv1.Phase_PHASE_RUNNING)
	pattern := engine + " --dir " + filepath.Join(dir, "far")
	if out, err := exec.CommandContext(t.Context(), "pkill", "-9", "-f", pattern).CombinedOutput(); err != nil {
		t.Errorf("kill the program: %v %s", err, out)
	}
	p.kill()
	p.begin()
	write(t, gate, "")
	r := p.awaitComplete(run)
	if r.GetOutcome() != baiv1.Outcome_OUTCOME_FAILED || r.GetReason() != "NonZeroExit" || r.GetExitCode() != 3 {
		t.Errorf("the run ends as %s, %s, %d: %s", r.GetOutcome(), r.GetReason(), r.GetExitCode(), r.GetMessage())
	}
	if diff := cmp.Diff([]string{"out speed=42"}, p.lines(run)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{42}, p.samples(run)["speed"]); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	if text, err := os.ReadFile(marks); err != nil || string(text) != "begun\n" {
		t.Errorf("the benchmark began %q times, %v", text, err)
	}
	if text, err := os.ReadFile(params); err != nil || !strings.Contains(string(text), `"custom_params":{`) || !strings.Contains(string(text), `"depth":3`) {
		t.Errorf("the program was not given custom_params: %.500s, %v", text, err)
	}
	eventually(t, func() error {
		if left, _ := filepath.Glob(filepath.Join(dir, "far", "*/record")); len(left) > 0 {
			return fmt.Errorf("the attempt stays on the far machine: %q", left)
		}
		return nil
	})
}
