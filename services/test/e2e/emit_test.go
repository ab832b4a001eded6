package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

func TestAShellEmitsByTheProgramThatIsInThePod(t *testing.T) {
	t.Parallel()
	p, own := start(t), t.TempDir()
	tooltest.WriteProgram(t, filepath.Join(own, "bai-emit"), "#!/bin/sh\necho mine\n")
	for name, tt := range map[string]struct {
		descriptor string
		want       map[string][]float64
	}{
		"a script": {
			script("set -e\nfor step in 1 2 3; do bai-emit --step $step loss=0.$step took=${step}5:ms; done"),
			map[string][]float64{"loss": {0.1, 0.2, 0.3}, "took": {15, 25, 35}},
		},
		"a command": {command("bai-emit loss=0.5"), map[string][]float64{"loss": {0.5}}},
		"a user's own program of that name comes first": {
			command("bai-emit loss=0.5") + "[env.vars]\nPATH = \"" + own + ":/usr/bin:/bin\"\n",
			map[string][]float64{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := p.withT(t)
			run := p.submit(tt.descriptor + "[output]\nsystem = false\n")
			if r := p.awaitComplete(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
				t.Fatalf("ended as %v\n%s", r, strings.Join(p.lines(run), "\n"))
			}
			if diff := cmp.Diff(tt.want, p.samples(run)); diff != "" {
				t.Errorf("samples (-want +got):\n%s\n%s", diff, strings.Join(p.lines(run), "\n"))
			}
		})
	}
}
