package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// sixCells is a descriptor with a sweep of six cells and two repetitions, whose runs wait for
// the file gate and print their parameters.
func sixCells(gate string) string {
	return script(fmt.Sprintf("until [ -e %s ]; do sleep 0.05; done\necho size {{size}} of {{n}}", gate)) + `
[sweep]
repetitions = 2
max_parallel = 3
[sweep.product]
size = ["1K", "1M"]
n = [1, 2, 3]
`
}

// A platform is killed while baictl follows a set. Each run of the set is made once all the
// same, and baictl sees the end.
func TestASetRunsEachRepetitionOfEachCellOnceWhenItsPlatformIsKilled(t *testing.T) {
	t.Parallel()
	p, dir := start(t, "--slots", "3"), t.TempDir()
	gate, file := filepath.Join(dir, "gate"), filepath.Join(dir, "sweep.toml")
	if err := os.WriteFile(file, []byte(sixCells(gate)), 0o600); err != nil {
		t.Fatal(err)
	}
	run := startRun(t, p, file)
	p.awaitSetRuns()
	p.kill()
	p.begin()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run.Wait(); err != nil {
		t.Fatalf("baictl run ends with %v: %s", err, run.Stdout)
	}
	if out := fmt.Sprint(run.Stdout); !strings.Contains(out, "12 of 12 runs ended\n") {
		t.Errorf("baictl run prints %s", out)
	}
	p.wantSetRuns("sizes")
}

// The results of a set are the medians of its repetitions' samples, without warm-ups, and the
// durations of the runs.
func TestResultsOfASetAreTheMediansOfItsRepetitions(t *testing.T) {
	t.Parallel()
	p := start(t, "--slots", "3")
	file := filepath.Join(t.TempDir(), "sweep.toml")
	text := script("for n in 1 2 3; do echo speed {{base}}$n; done", "[output]", "[[output.metrics]]", `name = "speed"`, `units = "MB/s"`,
		`pattern = 'speed (\d+)'`, `direction = "higher"`, "[sweep]", "repetitions = 2", "warmup = 1", "[sweep.product]", "base = [1, 20]")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := p.baictl("run", file, "--name", "speeds"); code != 0 {
		t.Fatalf("run exits with %d: %s%s", code, out, errs)
	}
	eventually(t, func() error {
		out, errs, code := p.baictl("set", "results", "speeds", "--metric", "speed", "--metric", "run.duration", "-o", "csv")
		if code != 0 {
			t.Fatalf("set results exits with %d: %s", code, errs)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != 5 || !strings.Contains(lines[4], ",speed,MB/s,,higher,2,0,4,202,,,,false,0,20") {
			return fmt.Errorf("the results are not complete: %s", out)
		}
		if !strings.Contains(lines[3], ",speed,MB/s,,higher,2,0,4,12,,,,false,0,1") || !strings.Contains(lines[1], ",run.duration,s,,,2,0,4,") {
			t.Errorf("the results are %s", out)
		}
		return nil
	})
}

// startRun starts a baictl that submits a set with the name sizes, and follows it.
func startRun(t *testing.T, p *platform, file string) *exec.Cmd {
	t.Helper()
	out := &lockedBuffer{}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "baictl"), "run", file, "--name", "sizes")
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), "BAI_SERVER="+p.addr, "HOME="+t.TempDir(), "BAI_OWNER=tester")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// setRuns are the runs of a set.
func (p *platform) setRuns(name string) []*baiv1.Run {
	p.t.Helper()
	set := p.set(name)
	got, err := p.api.ListRuns(p.t.Context(), &baiv1.ListRunsRequest{SetId: set.ID, PageSize: 100})
	if err != nil {
		p.t.Fatal(err)
	}
	return got.GetRuns()
}

// shownSet is a set as baictl shows it.
type shownSet struct {
	ID        string `json:"id"`
	State     string `json:"state"`
	Outcome   string `json:"outcome"`
	RunCount  int    `json:"runCount"`
	Succeeded int    `json:"succeeded"`
	Cells     []struct {
		Name string `json:"name"`
		Runs []struct {
			RunID string `json:"runId"`
		} `json:"runs"`
	} `json:"cells"`
}

func (p *platform) set(name string) (s shownSet) {
	p.t.Helper()
	out, errs, code := p.baictl("set", "get", name, "-o", "json")
	if code == 0 {
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			p.t.Fatal(err)
		}
	} else if !strings.Contains(errs, "does not exist") {
		p.t.Fatalf("set get exits with %d: %s", code, errs)
	}
	return s
}

// awaitSetRuns waits until three runs of the set sizes run.
func (p *platform) awaitSetRuns() {
	p.t.Helper()
	eventually(p.t, func() error {
		if p.set("sizes").ID == "" {
			return errors.New("there is no set")
		}
		running := 0
		for _, r := range p.setRuns("sizes") {
			if r.GetPhase() == baiv1.Phase_PHASE_RUNNING {
				running++
			}
		}
		if running < 3 {
			return fmt.Errorf("%d runs run, want 3", running)
		}
		return nil
	})
}

// wantSetRuns checks that a set of sixCells has succeeded, with each run once.
func (p *platform) wantSetRuns(name string) {
	p.t.Helper()
	set := p.set(name)
	if set.State != "finished" || set.Outcome != "succeeded" || set.RunCount != 12 || set.Succeeded != 12 || len(set.Cells) != 6 {
		p.t.Errorf("the set is %+v", set)
	}
	for _, c := range set.Cells {
		if len(c.Runs) != 2 {
			p.t.Errorf("cell %s has the runs %v, want 2", c.Name, c.Runs)
		}
	}
	var got, want []string
	for _, r := range p.setRuns(name) {
		l := r.GetLineage()
		p.awaitComplete(r.GetId())
		got = append(got, fmt.Sprintf("%s %d %s %s", l.GetCell(), l.GetRepetition(), r.GetOutcome(), p.lines(r.GetId())))
	}
	for _, size := range []string{"1K", "1M"} {
		for n := range 3 {
			for repetition := range 2 {
				want = append(want, fmt.Sprintf("size=%s,n=%d %d OUTCOME_SUCCEEDED [out size %s of %d]", size, n+1, repetition+1, size, n+1))
			}
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		p.t.Errorf("runs (-want +got):\n%s", diff)
	}
}

// The descriptor that baictl init writes for a sweep works as it is, also the second time: no
// run finds what an earlier one left on the machine.
func TestTheSweepThatInitWritesRunsTwice(t *testing.T) {
	t.Parallel()
	p, file := start(t, "--slots", "3"), filepath.Join(t.TempDir(), "sweep.toml")
	if _, errs, code := p.baictl("init", "--kind", "sweep", file); code != 0 {
		t.Fatalf("init exits with %d: %s", code, errs)
	}
	for range 2 {
		out, errs, code := p.baictl("run", file, "--set", "sweep.repetitions=1", "--set", "sweep.warmup=0", "--set", "sweep.max_parallel=3")
		if code != 0 || !strings.Contains(out, "6 of 6 runs ended\n") {
			t.Fatalf("run exits with %d: %s%s", code, out, errs)
		}
	}
	out, errs, code := p.baictl("set", "list", "-o", "json")
	if code != 0 || strings.Count(out, `"description": "Compresses {{size}} with level {{level}}"`) != 2 {
		t.Errorf("set list exits with %d: %s%s, want two sets with the description of all cells", code, out, errs)
	}
}

func TestACanceledSetEndsItsRuns(t *testing.T) {
	t.Parallel()
	p, dir := start(t, "--slots", "3"), t.TempDir()
	file := filepath.Join(dir, "sweep.toml")
	if err := os.WriteFile(file, []byte(sixCells(filepath.Join(dir, "never"))), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := p.baictl("submit", file, "--name", "sizes"); code != 0 {
		t.Fatalf("submit exits with %d: %s", code, errs)
	}
	p.awaitSetRuns()
	if out, errs, code := p.baictl("set", "cancel", "sizes"); code != 0 || !strings.Contains(out, "canceling") {
		t.Fatalf("set cancel exits with %d: %s%s", code, out, errs)
	}
	if out, errs, code := p.baictl("set", "watch", "sizes"); code != 5 || !strings.Contains(out, "3 of 12 runs ended, 3 canceled") {
		t.Errorf("set watch exits with %d: %s%s", code, out, errs)
	}
}
