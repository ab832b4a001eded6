package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

// TestWhatWasWrittenForTheOriginalSystemRunsUnchanged submits a descriptor and a
// script of the original system, as its client would: the code as an archive with
// one folder. The script imports the client library that its image would hold:
// the original's, which writes to the FIFO, or ours.
func TestWhatWasWrittenForTheOriginalSystemRunsUnchanged(t *testing.T) {
	t.Parallel()
	tooltest.Program(t, "python3", "python3")
	config := writeTemp(t, "[executor.pods]\nzones = { use1-az1 = \"us-east-1a\" }\n") // its operator named zones, too
	platform := start(t, "--config", config)
	for name, library := range map[string]string{
		"with the original's client library": "testdata/original/benchmarkai.py",
		"with ours":                          "../../../client-lib/python/src/benchmarkai",
	} {
		t.Run(name, func(t *testing.T) {
			p := platform.withT(t)
			run := p.submittedID("run", "testdata/original/descriptor.toml", "--script", withLibrary(t, library), "-o", "name")
			p.wantTrained(run)
		})
	}
}

// wantTrained checks the results of the original system's script.
func (p *platform) wantTrained(run string) {
	t := p.t
	t.Helper()
	if r := p.awaitComplete(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Fatalf("%v\n%q", r, p.lines(run))
	}
	if diff := cmp.Diff([]string{"out epoch=1 loss=1.000", "out epoch=2 loss=0.500", "out epoch=3 loss=0.333"}, p.lines(run)); diff != "" {
		t.Errorf("its log (-want +got):\n%s", diff)
	}
	got := p.samples(run)
	for metric, want := range map[string][]float64{
		"epoch": {1, 2, 3}, "train_loss": {1, 0.5, 0.333}, "accuracy": {0.5, 0.75, 1 - 0.5/3}, "samples_per_second": {1000, 2000, 3000}, "done": {1},
	} {
		if diff := cmp.Diff(want, got[metric]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", metric, diff)
		}
	}
	if label := p.get(run).GetLabels()["task_name"]; label != "hello-world-script-mode" {
		t.Errorf("its task is %q", label)
	}
}

// withT is the platform for a part of its test.
func (p *platform) withT(t *testing.T) *platform {
	t.Helper()
	q := *p
	q.t = t
	return &q
}

// withLibrary returns an archive of the script with a client library beside it.
func withLibrary(t *testing.T, library string) string {
	t.Helper()
	dir := t.TempDir()
	tar := filepath.Join(dir, "0a4d55a8d778e5022fab701977c5d840bbc486d0.tar")
	for _, args := range [][]string{
		{"cp", "-r", "testdata/original/src", dir},
		{"cp", "-r", library, filepath.Join(dir, "src")},
		{"tar", "-C", dir, "-cf", tar, "src"},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	if _, err := os.Stat(tar); err != nil {
		t.Fatal(err)
	}
	return tar
}
