package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// TestAFullDiskDelaysRunsAndLosesNothing fills the file system of the data
// directory while a run runs and another is submitted. Broker and store are the
// embedded ones, whose files lie there: real servers have disks of their own.
func TestAFullDiskDelaysRunsAndLosesNothing(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t)
	p := startEmbedded(t, filepath.Join(disk, "data"), "--slots", "4")
	gate := filepath.Join(t.TempDir(), "gate")
	before := p.submit(script("i=0; while [ ! -e " + gate + " ]; do i=$((i+1)); echo $i; sleep 0.01; done; echo end $i"))
	p.awaitPhase(before, baiv1.Phase_PHASE_RUNNING)
	eventually(t, func() error {
		if len(p.lines(before)) == 0 {
			return errors.New("the first run has written nothing yet")
		}
		return nil
	})
	filler := fill(t, disk)

	if _, err := p.submitUnder("while-full", 2*time.Second, script("echo hello")); err != nil && !isRetryable(err) {
		t.Errorf("a submit on a full disk: %v; want that it may work later", err)
	}
	write(t, gate, "")
	eventually(t, func() error {
		if log := p.log.String(); !strings.Contains(log, "full") && !strings.Contains(log, syscall.ENOSPC.Error()) {
			return errors.New("the platform does not say that the disk is full")
		}
		return nil
	})
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}

	during := p.submitUntilAccepted("while-full", script("echo hello"))
	for _, run := range []string{before, during} {
		if r := p.awaitComplete(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
			t.Errorf("run %s: %v", run, r)
		}
	}
	if lines := p.lines(during); len(lines) != 1 || lines[0] != "out hello" {
		t.Errorf("the run that was submitted on a full disk wrote %q", lines)
	}
	wantWhole(t, p.lines(before))
}

// smallDisk returns a file system of its own for the test.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=128m"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("mount a file system for the test: %v: run the checks as root", err)
		}
		t.Skipf("this kernel lets us have no file system of our own: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// fill leaves no space in a file system, and returns the file that takes it.
func fill(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 20; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// submitUnder submits a descriptor under an idempotency key.
func (p *platform) submitUnder(key string, within time.Duration, descriptor string) (string, error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), within)
	defer cancel()
	r, err := p.api.SubmitRun(ctx, &baiv1.SubmitRunRequest{IdempotencyKey: key, DescriptorToml: []byte(descriptor), Owner: "tester"}, grpc.WaitForReady(true))
	return r.GetRunId(), err
}

// submitUntilAccepted submits until the platform has taken the run.
func (p *platform) submitUntilAccepted(key, descriptor string) (run string) {
	p.t.Helper()
	eventually(p.t, func() (err error) {
		run, err = p.submitUnder(key, 5*time.Second, descriptor)
		return err
	})
	return run
}

func isRetryable(err error) bool {
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded || code == codes.ResourceExhausted
}

// wantWhole checks that lines count from 1 without a gap up to the last, which
// says how far.
func wantWhole(t *testing.T, lines []string) {
	t.Helper()
	if len(lines) < 2 {
		t.Fatalf("only %q", lines)
	}
	for i, line := range lines[:len(lines)-1] {
		if want := fmt.Sprintf("out %d", i+1); line != want {
			t.Fatalf("line %d is %q, want %q", i, line, want)
		}
	}
	if last, want := lines[len(lines)-1], fmt.Sprintf("out end %d", len(lines)-1); last != want {
		t.Errorf("the last line is %q, want %q", last, want)
	}
}
