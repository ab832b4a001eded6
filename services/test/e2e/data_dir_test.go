package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// TestTheDataFolderMayHaveEveryNameThatLinuxAllows: all that a platform keeps lies
// in its folder, and nothing beside it, whatever the folder is called.
func TestTheDataFolderMayHaveEveryNameThatLinuxAllows(t *testing.T) {
	t.Parallel()
	for title, name := range map[string]string{
		"the signs of a URL": "a#b?c=d&e%zz%2f+;", "a line feed": "line\nfeed {run}", "a pattern": "[b]*?", "quotes": `it's "so" \ $(x)`,
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			wantWorksIn(t, name)
		})
	}
}

// wantWorksIn runs a platform in a folder of a name, kills it under a run, and looks for
// files beside the folder.
func wantWorksIn(t *testing.T, name string) {
	t.Helper()
	around := t.TempDir()
	p := startEmbedded(t, filepath.Join(around, name))
	run := p.submit(script(`echo kept >/results/file; echo hi`, "[[volumes]]\npath = \"/results\"\nephemeral = { size = \"1MiB\" }", "[output]\nmetrics = []\n[[output.artifacts]]\npath = \"/results/file\""))
	if r := p.awaitComplete(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("ended as %v", r)
	}
	if got := p.lines(run); !slices.Equal(got, []string{"out hi"}) {
		t.Errorf("lines %q", got)
	}
	if out, _ := p.wantCode(0, "artifacts", "get", run, "1/benchmark-0/results/file", "--to", "-"); out != "kept\n" {
		t.Errorf("the artifact is %q", out)
	}
	long := p.submit(counter(100))
	p.awaitPhase(long, baiv1.Phase_PHASE_RUNNING)
	p.kill()
	p.begin()
	if r := p.awaitComplete(long); r.GetReason() != "NonZeroExit" {
		t.Errorf("after kill -9 the run ended as %v, want exit 7 of the benchmark's own", r)
	}
	wantCounted(t, p, long, 100)
	entries, err := os.ReadDir(around)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if d := cmp.Diff([]string{name}, names); d != "" {
		t.Errorf("beside the folder (-want +got):\n%s", d)
	}
}
