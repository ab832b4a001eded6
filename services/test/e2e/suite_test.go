package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A suite in a folder beside those of its descriptors is one set, which baictl follows while
// its platform is killed. Each run is made once, and the results know the entries.
func TestASuiteRunsEachRepetitionOfEachEntryOnceWhenItsPlatformIsKilled(t *testing.T) {
	t.Parallel()
	p, dir := start(t, "--slots", "3"), t.TempDir()
	gate := filepath.Join(dir, "gate")
	metrics := []string{"[output]", "[[output.metrics]]", `name = "speed"`, `units = "MB/s"`, `pattern = 'speed (\d+)'`}
	wait := fmt.Sprintf("until [ -e %s ]; do sleep 0.05; done\n", gate)
	for name, text := range map[string]string{
		"one.toml":   script(wait+"echo speed $SPEED", metrics...),
		"swept.toml": script(wait+"echo speed {{base}}{{digit}}", append(metrics, "[sweep]", "repetitions = 3", "[sweep.product]", "base = [1, 20]")...),
		"suites/s.toml": `[suite]
name = "nightly"
repetitions = 2
max_parallel = 3
order = "interleaved"
[[suite.entries]]
name = "plain"
descriptor = "../one.toml"
warmup = 1
[suite.entries.values]
env.vars.SPEED = "7"
[[suite.entries]]
name = "swept"
descriptor = "../swept.toml"
[suite.entries.values]
digit = 4
`,
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := startRun(t, p, filepath.Join(dir, "suites/s.toml"))
	p.awaitSetRuns()
	p.kill()
	p.begin()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run.Wait(); err != nil {
		t.Fatalf("baictl run ends with %v: %s", err, run.Stdout)
	}
	if out := fmt.Sprint(run.Stdout); !strings.Contains(out, "9 of 9 runs ended\n") {
		t.Errorf("baictl run prints %s", out)
	}
	seen := make(map[string]bool)
	for _, r := range p.setRuns("sizes") {
		l := r.GetLineage()
		repetition := fmt.Sprint(l.GetCell(), l.GetRepetition(), l.GetWarmup())
		if seen[repetition] || r.GetLabels()["suite"] != "nightly" {
			t.Errorf("run %v", r)
		}
		seen[repetition] = true
	}
	if len(seen) != 9 {
		t.Errorf("%d of 9 runs", len(seen))
	}
	p.wantEntries()
}

// wantEntries waits until the results of the set are complete.
func (p *platform) wantEntries() {
	p.t.Helper()
	eventually(p.t, func() error {
		out, errs, code := p.baictl("set", "results", "sizes", "--metric", "speed", "-o", "csv")
		if code != 0 {
			p.t.Fatalf("set results exits with %d: %s", code, errs)
		}
		for _, line := range []string{",suite.entry,", ",2,0,4,7,,,,false,0,plain,", ",3,0,3,14,,,,false,0,swept,", ",3,0,3,204,,,,false,0,swept,"} {
			if !strings.Contains(out, line) {
				return fmt.Errorf("no %s in %s", line, out)
			}
		}
		return nil
	})
}
