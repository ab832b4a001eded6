//go:build unix

package lock_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/lock"
)

// TestMain lets the test binary hold a lock until its standard input ends.
func TestMain(m *testing.M) {
	if path := os.Getenv("LOCK_TEST_HOLD"); path != "" {
		if _, err := lock.Acquire(path); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_, _ = fmt.Fprintln(os.Stdout, "held")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// holdInProcess makes another process hold the lock, and returns a function that kills
// it.
func holdInProcess(t *testing.T, path string) (pid int, kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "LOCK_TEST_HOLD="+path)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the holder says %q", line)
	}
	return cmd.Process.Pid, func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
}

func TestALockHasOneHolderWhoIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	pid, kill := holdInProcess(t, path)
	defer kill()
	_, err := lock.Acquire(path)
	var held *lock.HeldError
	if !errors.As(err, &held) || held.Holder != pid || held.Path != path {
		t.Errorf("Take: %v, want that process %d holds %s", err, pid, path)
	}
}

func TestALockOfAProcessThatWasKilledIsFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	_, kill := holdInProcess(t, path)
	kill()
	acquireTwice(t, path)
}

func TestALockThatIsGivenBackWithinPatienceIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	_, kill := holdInProcess(t, path)
	time.AfterFunc(lock.AcquireTimeout/10, kill)
	acquireTwice(t, path)
}

func TestALockThatCannotBeMadeSaysWhy(t *testing.T) {
	if _, err := lock.Acquire(filepath.Join(t.TempDir(), "missing", "lock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Take: %v, want %v", err, os.ErrNotExist)
	}
}

// acquireTwice takes the lock, twice: it is free once it is closed.
func acquireTwice(t *testing.T, path string) {
	t.Helper()
	for range 2 {
		l, err := lock.Acquire(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
