package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// numbered is how many lines each stream has: as many as a segment of the broker
// and a page of the store cannot hold, and a million where all suites run.
func numbered() int {
	if isLongForm() {
		return 1_000_000
	}
	return 200_000
}

func TestHundredsOfThousandsOfLinesArriveOnceAndInOrder(t *testing.T) {
	t.Parallel()
	p := start(t)
	run := p.submit(script(fmt.Sprintf(`awk 'BEGIN { for (i = 1; i <= %d; i++) { print "out " i; print "err " i > "/dev/stderr" } }'`, numbered())))
	p.awaitPhase(run, baiv1.Phase_PHASE_RUNNING)
	wantNumbered(t, "during the run", p.follow("logs", "-f", run))
	if r := p.awaitComplete(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("ended as %v", r)
	}
	wantNumbered(t, "after the run", p.follow("logs", run))
}

// follow returns a scanner over the standard output of baictl, the lines of both streams.
func (p *platform) follow(args ...string) *bufio.Scanner {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "baictl"), args...)
	cmd.Env = append(os.Environ(), "BAI_SERVER="+p.addr, "HOME="+p.t.TempDir())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	return bufio.NewScanner(out)
}

// wantNumbered checks that each stream counts to the last line without a gap.
func wantNumbered(t *testing.T, when string, lines *bufio.Scanner) {
	t.Helper()
	next := map[string]int{"out": 1, "err": 1}
	for lines.Scan() {
		stream, number, _ := strings.Cut(lines.Text(), " ")
		if number != fmt.Sprint(next[stream]) {
			t.Fatalf("%s: line %q of %s, want %d", when, lines.Text(), stream, next[stream])
		}
		next[stream]++
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for stream, n := range next {
		if n != numbered()+1 {
			t.Errorf("%s: %d lines of %s, want %d", when, n-1, stream, numbered())
		}
	}
}
