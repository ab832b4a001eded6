package jvm_test

import (
	"context"
	"errors"
	"fmt"
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
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	pid := fmt.Sprint(gone.Process.Pid)
	socket := "/tmp/.java_pid" + pid
	if err := errors.Join(os.WriteFile(filepath.Join(left, "pid"), []byte(pid), 0o600), os.WriteFile(socket, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	jvm.NewHome(t, "second")
	for _, path := range []string{left, socket} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s: %v, want it gone", path, err)
		}
	}
	if _, err := os.Stat(first.Dir); err != nil {
		t.Errorf("the folder of a test that goes on: %v", err)
	}
}

func TestAServerRunsUntilItIsEndedAndCanBeginAgain(t *testing.T) {
	home := jvm.NewHome(t, "sleep")
	ready := func(context.Context) error {
		_, err := os.Stat(home.Path("ready"))
		return err
	}
	p := home.Begin(t, ready, nil, "/bin/sh", "-c", "echo $$ > pid; touch /tmp/.java_pid$$ ready; exec sleep 60")
	p.Kill()
	pid, err := os.ReadFile(home.Path("pid"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/tmp/.java_pid" + strings.TrimSpace(string(pid))); !os.IsNotExist(err) {
		t.Errorf("the socket of a killed server: %v, want it gone", err)
	}
	p.Restart(t)
	p.End()
}

func TestASetThatIsNotPinnedIsNotFetched(t *testing.T) {
	if _, err := jvm.Fetch(t.Context(), "unknown"); err == nil || !strings.Contains(err.Error(), `no set "unknown"`) {
		t.Errorf("fetch: %v, want which set is not pinned", err)
	}
}
