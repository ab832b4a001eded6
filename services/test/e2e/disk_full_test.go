package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/test/testbed/port"
)

// TestAFullDiskIsToldToItsUserAndCancelFreesIt has a run print more than the disk of
// the data folder holds.
func TestAFullDiskIsToldToItsUserAndCancelFreesIt(t *testing.T) {
	t.Parallel()
	p, health := startOnSmallDisk(t)
	quiet := p.submit(script("echo quiet"))
	p.awaitComplete(quiet)
	run := p.submit(script("head -c 150000000 /dev/urandom | base64; echo end"))
	p.awaitPhase(run, baiv1.Phase_PHASE_RUNNING)
	watch := p.watch(run)

	eventually(t, func() error {
		if r := p.get(run); r.GetReason() != "NoSpace" || !strings.Contains(r.GetMessage(), "disk is full") {
			return fmt.Errorf("the run says %s %q", r.GetReason(), r.GetMessage())
		}
		return nil
	})
	for _, verb := range []string{"get", "why"} {
		out, stderr, code := p.baictl(verb, run)
		if text := strings.Join(strings.Fields(out), " "); code != 0 || !strings.Contains(text, "disk is full") {
			t.Errorf("baictl %s: exit %d, which does not say that the disk is full:\n%s%s", verb, code, out, stderr)
		}
	}
	eventually(t, func() error { return wantReadiness(t, health, http.StatusServiceUnavailable, p.dir, "free") })

	if _, err := p.api.CancelRun(t.Context(), &baiv1.CancelRunRequest{Run: run}); err != nil {
		t.Fatalf("cancel on a full disk: %v", err)
	}
	eventually(t, func() error {
		if r := p.get(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_CANCELED {
			return fmt.Errorf("the run is %s: %s", r.GetPhase(), r.GetMessage())
		}
		return nil
	})
	if output := watch(); !strings.Contains(strings.Join(strings.Fields(output), " "), "disk is full") {
		t.Errorf("baictl watch did not say that the disk is full:\n%s", output)
	}
	eventually(t, func() error { return wantReadiness(t, health, http.StatusOK) })
	after := p.submitUntilAccepted("after", script("echo hello"))
	if r := p.awaitComplete(after); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("the run after the full disk: %v", r)
	}
	if lines := p.lines(after); len(lines) != 1 || lines[0] != "out hello" {
		t.Errorf("the run after the full disk wrote %q", lines)
	}
}

// TestADiskThatAnotherProgramFillsLosesNothingAccepted fills the disk beside the
// platform, kills the platform in it, and makes room again.
func TestADiskThatAnotherProgramFillsLosesNothingAccepted(t *testing.T) {
	t.Parallel()
	p, health := startOnSmallDisk(t)
	gate := filepath.Join(t.TempDir(), "gate")
	counts := p.submit(script("i=0; while [ ! -e " + gate + " ]; do i=$((i+1)); echo $i; sleep 0.01; done; echo end $i"))
	sleeps := p.submit(script("sleep 1000"))
	p.awaitPhase(counts, baiv1.Phase_PHASE_RUNNING)
	p.awaitPhase(sleeps, baiv1.Phase_PHASE_RUNNING)
	filler := fill(t, filepath.Dir(p.dir))

	eventually(t, func() error { return wantRefused(p) })
	eventually(t, func() error { return wantReadiness(t, health, http.StatusServiceUnavailable, p.dir) })
	eventually(t, func() error { // the reserve is given up by then
		_, err := p.api.CancelRun(t.Context(), &baiv1.CancelRunRequest{Run: sleeps})
		return err
	})
	eventually(t, func() error {
		if r := p.get(sleeps); r.GetOutcome() != baiv1.Outcome_OUTCOME_CANCELED {
			return fmt.Errorf("the run is %s: %s", r.GetPhase(), r.GetMessage())
		}
		return nil
	})
	p.kill()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	p.begin()

	after := p.submitUntilAccepted("refused", script("echo hello"))
	write(t, gate, "")
	for _, run := range []string{counts, after} {
		if r := p.awaitComplete(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
			t.Errorf("run %s: %v", run, r)
		}
	}
	wantWhole(t, p.lines(counts))
	if r := p.get(sleeps); r.GetOutcome() != baiv1.Outcome_OUTCOME_CANCELED {
		t.Errorf("the run that was canceled on a full disk: %v", r)
	}
	eventually(t, func() error { return wantReadiness(t, health, http.StatusOK) })
}

// startOnSmallDisk starts a platform whose data folder has 128 MiB, and returns the
// URL of its readiness.
func startOnSmallDisk(t *testing.T) (*platform, string) {
	t.Helper()
	disk, health := smallDisk(t), port.Addr(t)
	config := filepath.Join(t.TempDir(), "bai.toml")
	write(t, config, "health = \""+health+"\"\n")
	return startEmbedded(t, filepath.Join(disk, "data"), "--slots", "2", "--config", config), "http://" + health + "/readyz"
}

// watch follows a run, and returns a function that waits for its end and returns all
// statuses.
func (p *platform) watch(run string) func() string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), filepath.Join(bin, "baictl"), "watch", run)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = append(os.Environ(), "BAI_SERVER="+p.addr, "HOME="+p.t.TempDir())
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	return func() string {
		_ = cmd.Wait() // a run that was canceled is an exit code
		return out.String()
	}
}

// wantReadiness describes how a readiness answer differs from the wanted one.
func wantReadiness(t *testing.T, url string, code int, words ...string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != code {
		return fmt.Errorf("ready is %d, want %d: %s", res.StatusCode, code, text)
	}
	for _, w := range words {
		if !strings.Contains(string(text), w) {
			return fmt.Errorf("ready does not say %q: %s", w, text)
		}
	}
	return nil
}

// wantRefused says that a submit is not refused as for a full disk.
func wantRefused(p *platform) error {
	ctx, cancel := context.WithTimeout(p.t.Context(), 10*time.Second)
	defer cancel()
	_, err := p.api.SubmitRun(ctx, &baiv1.SubmitRunRequest{IdempotencyKey: "refused", DescriptorToml: []byte(script("echo hello")), Owner: "tester"}, grpc.WaitForReady(true))
	if status.Code(err) != codes.ResourceExhausted {
		return fmt.Errorf("a submit on a full disk: %w, want RESOURCE_EXHAUSTED", errors.Join(err, errors.New("not refused so")))
	}
	for _, w := range []string{p.dir, "free", "needs"} {
		if !strings.Contains(status.Convert(err).Message(), w) {
			return fmt.Errorf("the refusal does not say %q: %w", w, err)
		}
	}
	return nil
}
