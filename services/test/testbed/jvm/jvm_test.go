package jvm_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/test/testbed/jvm"
)

func TestWhatAKilledTestHasLeftIsRemovedByTheNext(t *testing.T) {
	first := jvm.NewHome(t, "first")
	left := filepath.Join(filepath.Dir(first.Dir), "left-by-a-killed-test")
	if err := os.MkdirAll(left, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "owner"), []byte("1 0"), 0o600); err != nil { // a process that began at another time
		t.Fatal(err)
	}
	jvm.NewHome(t, "second")
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("%s: %v, want it gone", left, err)
	}
	if _, err := os.Stat(first.Dir); err != nil {
		t.Errorf("the folder of a test that goes on: %v", err)
	}
}

func TestAServerRunsUntilItIsEndedAndCanBeginAgain(t *testing.T) {
	if _, err := exec.LookPath("sleep"); err != nil {
		t.Skip("needs sleep")
	}
	home := jvm.NewHome(t, "sleep")
	p := home.Begin(t, func(ctx context.Context) error { return ctx.Err() }, nil, "sleep", "60")
	p.Kill()
	p.Restart(t)
	p.End()
}

func TestASetThatIsNotPinnedIsNotFetched(t *testing.T) {
	if _, err := jvm.Fetch(t.Context(), "unknown"); err == nil || !strings.Contains(err.Error(), `no set "unknown"`) {
		t.Errorf("fetch: %v, want which set is not pinned", err)
	}
}
