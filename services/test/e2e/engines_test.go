package e2e_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// A sweep over the engines of a platform fills the slots of each, also after the platform was killed, and each run is on the engine of its
// cell.
func TestASweepOverEnginesFillsBoth(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings, gate, file := filepath.Join(dir, "settings.toml"), filepath.Join(dir, "gate"), filepath.Join(dir, "sweep.toml")
	write(t, settings, "[engines.second]\nkind = \"local\"\nslots = 2\n")
	write(t, file, script(fmt.Sprintf("until [ -e %s ]; do sleep 0.05; done\necho done", gate))+`
[sweep]
repetitions = 3
max_parallel = 6
[sweep.product]
"info.execution_engine" = ["default", "second"]
`)
	p := start(t, "--slots", "1", "--config", settings)
	run := startRun(t, p, file)
	p.awaitSetRuns()
	p.kill()
	p.begin()
	p.awaitSetRuns()
	running := map[string]int{}
	for _, r := range p.setRuns("sizes") {
		if r.GetPhase() == baiv1.Phase_PHASE_RUNNING {
			running[r.GetLineage().GetCell()]++
			if strings.HasSuffix(r.GetLineage().GetCell(), "second") != p.runsOn("second", r.GetId()) {
				t.Errorf("the pod of %s is not on the engine of %s", r.GetId(), r.GetLineage().GetCell())
			}
		}
	}
	if diff := cmp.Diff(map[string]int{"execution_engine=default": 1, "execution_engine=second": 2}, running); diff != "" {
		t.Errorf("running (-want +got):\n%s", diff)
	}
	write(t, gate, "")
	if err := run.Wait(); err != nil {
		t.Fatalf("baictl run ends with %v: %s", err, run.Stdout)
	}
	for _, r := range p.setRuns("sizes") {
		p.awaitComplete(r.GetId())
		if got := p.lines(r.GetId()); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED || len(got) != 1 {
			t.Errorf("%s of %s: %s, printed %q", r.GetId(), r.GetLineage().GetCell(), r.GetOutcome(), got)
		}
	}
	text := strings.Replace(command("true"), "[info]", "[info]\nexecution_engine = \"third\"", 1)
	write(t, file, text)
	if _, errs, code := p.baictl("submit", file); code == 0 || !strings.Contains(errs, `this platform has no engine "third" (use one of default, local, second, or leave it out)`) {
		t.Errorf("submit exits with %d: %s", code, errs)
	}
}

// runsOn reports whether an engine of this machine has files of a run.
func (p *platform) runsOn(engine, run string) bool {
	p.t.Helper()
	found := false
	err := filepath.WalkDir(filepath.Join(p.dir, "engines", engine), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // files come and go
		}
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), run) {
			found = true
			return filepath.SkipAll
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}
