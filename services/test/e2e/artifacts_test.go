package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// TestWhatABenchmarkLeftIsKeptHoweverItEnded: the artifacts of a run that went
// wrong are those that matter most.
func TestWhatABenchmarkLeftIsKeptHoweverItEnded(t *testing.T) {
	t.Parallel()
	p := start(t, "--slots", "8")
	const results = "[[volumes]]\npath = \"/results\"\nephemeral = { size = \"1MiB\" }"
	for name, tt := range map[string]leaving{
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
			text: "echo kept >OUT/file; kill -9 $PPID; sleep 60", reason: "Signaled", says: "is not kept: the benchmark's container was ended before it could be copied",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.wantKept(p.of(t))
		})
	}
}

// leaving is a run that leaves a file.
type leaving struct {
	text   string // of which OUT is a folder, and which writes kept to a file there
	more   string
	path   string // of the folder where it is not the machine's
	act    func(p *platform, run string)
	reason string // of the end; empty for a run that succeeded
	says   string // of what is not kept
}

// wantKept checks that the file is kept, or that is said why not.
func (l leaving) wantKept(p *platform) {
	t := p.t
	t.Helper()
	dir := l.path
	if dir == "" {
		dir = t.TempDir()
	}
	artifact := fmt.Sprintf("[output]\nmetrics = []\n[[output.artifacts]]\npath = \"%s/file\"", dir)
	run := p.submit(script(strings.ReplaceAll(l.text, "OUT", dir), l.more, artifact))
	if l.act != nil {
		eventually(t, time.Minute, func() error { _, err := os.Stat(filepath.Join(dir, "begun")); return err })
		l.act(p, run)
	}
	r := p.complete(run)
	if succeeded := r.GetOutcome() == baiv1.Outcome_OUTCOME_SUCCEEDED; succeeded != (l.reason == "") || !succeeded && r.GetReason() != l.reason {
		t.Errorf("it ended as %v", r)
	}
	if l.says != "" {
		if why, _ := p.wantCode(0, "why", run); !strings.Contains(why, l.says) {
			t.Errorf("nobody says what is not kept:\n%s", why)
		}
		return
	}
	file := "1/benchmark-0" + dir + "/file"
	if out, _ := p.wantCode(0, "artifacts", "get", run, file, "--to", "-"); out != "kept\n" {
		t.Errorf("%s holds %q", file, out)
	}
}
