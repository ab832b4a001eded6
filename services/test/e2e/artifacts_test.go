package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

// TestWhatABenchmarkLeftIsKeptHoweverItEnded: the artifacts of a run that went
// wrong are those that matter most.
func TestWhatABenchmarkLeftIsKeptHoweverItEnded(t *testing.T) {
	t.Parallel()
	p := start(t, "--slots", "8")
	const results = "[[volumes]]\npath = \"/results\"\nephemeral = { size = \"1MiB\" }"
	for name, tt := range map[string]artifactCase{
		"it succeeded": {text: "echo kept >OUT/file"},
		"it failed":    {text: "echo kept >OUT/file; exit 3", reason: "NonZeroExit"},
		"it was canceled": {
			text: "trap 'echo kept >OUT/file; exit 1' TERM\n: >OUT/begun\nwhile :; do sleep 0.1; done", act: (*platform).cancel, reason: "CanceledByUser",
		},
		"its time was up": {
			text: "trap 'echo kept >OUT/file; exit 1' TERM\nwhile :; do sleep 0.1; done", more: "[limits]\ndeadline = \"10s\"", reason: "DeadlineExceeded",
		},
		"it was killed, as one of its processes is when memory runs out": {text: "echo kept >OUT/file; kill -9 $$", reason: "Signaled"},
		"its container was killed, as the kernel does where a pod's memory is one group, and a volume is left": {
			text: "echo kept >OUT/file; kill -9 $PPID; sleep 60", more: results, path: "/results", reason: "Signaled",
		},
		"its container was killed, and nothing is left": {
			text: "echo kept >OUT/file; kill -9 $PPID; sleep 60", reason: "Signaled", messagePattern: "is not kept: the benchmark's container was ended before it could be copied",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.wantArtifact(p.withT(t))
		})
	}
}

// TestARunThatNeedsMoreMemoryThanItMayHaveSaysSoAndKeepsWhatItLeft: the kernel ends
// a process over the limit of its cgroup.
func TestARunThatNeedsMoreMemoryThanItMayHaveSaysSoAndKeepsWhatItLeft(t *testing.T) {
	t.Parallel()
	p := start(t, "--slots", "4")
	const starved = `ran out of memory \(OOM\); it asked for 64Mi \(hardware\.memory\)`
	for name, tt := range map[string]struct{ text, more, reason, says string }{
		"one that ended itself, beside the others": {text: "echo kept >OUT/file; sleep 2; kill -9 $$", reason: "Signaled", says: "SIGKILL"},
		"the command itself":                       {text: "echo kept >OUT/file; exec tail /dev/zero", reason: "OOMKilled", says: starved},
		"a process that the command starts":        {text: "echo kept >OUT/file; tail /dev/zero; exit 1", reason: "OOMKilled", says: starved},
		"beside a volume on which the files lie":   {text: "echo kept >OUT/file; exec tail /dev/zero", more: "[[volumes]]\npath = \"/results\"\nephemeral = { size = \"1MiB\" }", reason: "OOMKilled", says: starved},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := p.withT(t)
			dir := t.TempDir()
			if tt.more != "" {
				dir = "/results"
			}
			text := script(strings.ReplaceAll(tt.text, "OUT", dir), tt.more, fmt.Sprintf("[output]\nmetrics = []\n[[output.artifacts]]\npath = \"%s/file\"", dir))
			run := p.submit(strings.Replace(text, "[env]", "memory = \"64MiB\"\n[env]", 1))
			r := p.awaitComplete(run)
			if why, _ := p.wantCode(0, "why", run); strings.Contains(oneLine(why), "hardware.memory (no limits: ") {
				tooltest.Missing(t, "this machine enforces no limits of memory")
			}
			if r.GetReason() != tt.reason || r.GetFailureClass() != baiv1.FailureClass_FAILURE_CLASS_USER || !regexp.MustCompile(tt.says).MatchString(r.GetMessage()) {
				t.Errorf("it ended as %v, want %s: %s", r, tt.reason, tt.says)
			}
			if out, _ := p.wantCode(0, "artifacts", "get", run, "1/benchmark-0"+dir+"/file", "--to", "-"); out != "kept\n" {
				t.Errorf("the file holds %q", out)
			}
		})
	}
}

// TestARunThatIsKilledDoesNotLackMemoryBecauseAnotherOneDoes: the kernel counts whom it
// kills for each cgroup, and for the whole machine.
func TestARunThatIsKilledDoesNotLackMemoryBecauseAnotherOneDoes(t *testing.T) {
	t.Parallel()
	p := start(t, "--slots", "2")
	dir := t.TempDir()
	killed := p.submit(script(fmt.Sprintf(": >%[1]s/begun; until [ -e %[1]s/now ]; do sleep 0.1; done; kill -9 $PPID; sleep 60", dir), ""))
	eventually(t, func() error { _, err := os.Stat(filepath.Join(dir, "begun")); return err })
	starved := p.submit(strings.Replace(script("exec tail /dev/zero", ""), "[env]", "memory = \"64MiB\"\n[env]", 1))
	if r := p.awaitEnd(starved); r.GetReason() != "OOMKilled" {
		if why, _ := p.wantCode(0, "why", starved); strings.Contains(oneLine(why), "hardware.memory (no limits: ") {
			tooltest.Missing(t, "this machine enforces no limits of memory")
		}
		t.Fatalf("the run over its limit ended as %v", r)
	}
	if err := os.WriteFile(filepath.Join(dir, "now"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := p.awaitEnd(killed); r.GetReason() != "Signaled" {
		t.Errorf("the run that was killed meanwhile ended as %v", r)
	}
}

// artifactCase is a run that leaves a file.
type artifactCase struct {
	text           string // OUT stands for a folder, and the text writes a kept file there
	more           string
	path           string // of the folder where it is not the machine's
	act            func(p *platform, run string)
	reason         string // of the end; empty for a run that succeeded
	messagePattern string // message about files that are not kept
}

// wantArtifact checks that the file is stored, or that the user sees the reason.
func (l artifactCase) wantArtifact(p *platform) {
	t := p.t
	t.Helper()
	dir := l.path
	if dir == "" {
		dir = t.TempDir()
	}
	artifact := fmt.Sprintf("[output]\nmetrics = []\n[[output.artifacts]]\npath = \"%s/file\"", dir)
	run := p.submit(script(strings.ReplaceAll(l.text, "OUT", dir), l.more, artifact))
	if l.act != nil {
		eventually(t, func() error { _, err := os.Stat(filepath.Join(dir, "begun")); return err })
		l.act(p, run)
	}
	r := p.awaitComplete(run)
	if succeeded := r.GetOutcome() == baiv1.Outcome_OUTCOME_SUCCEEDED; succeeded != (l.reason == "") || !succeeded && r.GetReason() != l.reason {
		t.Errorf("it ended as %v", r)
	}
	if l.messagePattern != "" {
		if why, _ := p.wantCode(0, "why", run); !strings.Contains(oneLine(why), l.messagePattern) {
			t.Errorf("nobody says what is not kept:\n%s", why)
		}
		return
	}
	file := "1/benchmark-0" + dir + "/file"
	if out, _ := p.wantCode(0, "artifacts", "get", run, file, "--to", "-"); out != "kept\n" {
		t.Errorf("%s holds %q", file, out)
	}
}

// TestABenchmarkCannotReplaceThePlatformsPrograms: they run beside it, with the
// credentials of the run.
func TestABenchmarkCannotReplaceThePlatformsPrograms(t *testing.T) {
	t.Parallel()
	p := start(t)
	run := p.submit(script(`for try in ': >>/bai/bin/bai-pod' 'rm -f /bai/bin/bai-pod' 'mv /bai/bin/bai-pod /bai/bin/x' 'cp /bin/sh /bai/bin/bai-pod-ship' 'mv /bai/bin /bai/old' 'ln -sf /bin/sh /bai/bin/bai-emit'; do
  if sh -c "$try" 2>/dev/null; then echo "could: $try"; else echo "refused: $try"; fi
done
bai-emit works=1`))
	r := p.awaitComplete(run)
	if r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED || len(p.samples(run)["works"]) != 1 {
		t.Fatalf("ended as %v", r)
	}
	if log := strings.Join(p.lines(run), "\n"); strings.Count(log, "refused: ") != 6 || strings.Contains(log, "could: ") {
		t.Errorf("the benchmark\n%s", log)
	}
}
