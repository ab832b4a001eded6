//go:build linux

package scratch_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/test/ci/scratch"
)

// roleVariable has this test binary be a check instead, with its folder below the
// value: it begins a process, mounts something where it may, and waits.
const roleVariable = "SCRATCH_ROOT"

func TestMain(m *testing.M) {
	root := os.Getenv(roleVariable)
	if root == "" {
		os.Exit(m.Run())
	}
	if err := beCheck(root); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func beCheck(root string) error {
	f, err := scratch.New(root)
	if err != nil {
		return err
	}
	child := exec.Command("sleep", "1000")
	child.Env = f.Environ()
	if err := child.Start(); err != nil {
		return err
	}
	point := filepath.Join(f.Path, "mount")
	if err := os.Mkdir(point, 0o700); err != nil {
		return err
	}
	mounted := unix.Mount("none", point, "tmpfs", 0, "") == nil
	if _, err := fmt.Fprintln(os.Stdout, f.Path, child.Process.Pid, mounted); err != nil {
		return err
	}
	select {}
}

// killedCheck begins a check, kills it, and returns its folder and the process
// that it left.
func killedCheck(t *testing.T, root string) (folder string, child int, mounted bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+root)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(line, &folder, &child, &mounted); err != nil {
		t.Fatalf("%v in %q", err, line)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // says that it was killed
	return folder, child, mounted
}

// ends waits until a process is gone.
func ends(t *testing.T, pid int) {
	t.Helper()
	for late := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(b), ") Z ") {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("process %d runs on", pid)
		}
	}
}

func TestTheNextCheckClearsWhatAKilledOneLeft(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	folder, child, mounted := killedCheck(t, root)
	found, err := scratch.Sweep(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	ends(t, child)
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
	want := []string{"the folder " + folder, fmt.Sprintf("process %d sleep 1000", child)}
	if mounted {
		want = append(want, "mount "+folder+"/mount")
	}
	if !slices.Equal(want, found) {
		t.Errorf("it says %q, want %q", found, want)
	}
	if found, err := scratch.Sweep(t.Context(), root); len(found) > 0 || err != nil {
		t.Errorf("once more: %q, %v", found, err)
	}
}

func TestWhatBelongsToACheckThatRunsIsNotTouched(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	f, err := scratch.New(root)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), "sleep", "1000")
	child.Env = f.Environ()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if found, err := scratch.Sweep(t.Context(), root); len(found) > 0 || err != nil {
		t.Errorf("swept %q, %v", found, err)
	}
	if left := f.Leftovers(); len(left) != 1 || !strings.Contains(left[0], "sleep 1000") {
		t.Errorf("left is %q, want the one process", left)
	}
	if found, err := f.Clear(t.Context()); len(found) != 1 || err != nil {
		t.Errorf("cleared %q, %v, want the one process", found, err)
	}
	if err := child.Wait(); err == nil {
		t.Error("the process of the check was not ended")
	}
}

func TestAProcessWithoutAnEnvironmentIsOfTheCheckInWhoseFolderItsProgramIs(t *testing.T) {
	t.Parallel()
	f, err := scratch.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	shell, errShell := exec.LookPath("sh")
	sleep, errSleep := exec.LookPath("sleep")
	supervisor := filepath.Join(f.Path, "supervisor")
	if err := errors.Join(errShell, errSleep, exec.CommandContext(t.Context(), "cp", shell, supervisor).Run()); err != nil { // its own process: none that is forked here holds the file
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), supervisor, "-c", sleep+" 1000 & echo $!; wait")
	cmd.Env = []string{} // none
	out, err := cmd.StdoutPipe()
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	if found, err := f.Clear(t.Context()); len(found) != 2 || err != nil {
		t.Errorf("cleared %q, %v, want the supervisor and what it has begun", found, err)
	}
	ends(t, child)
	_ = cmd.Wait() // says that it was killed
}

func TestAProcessThatOnlyMentionsTheFolderIsNotTouched(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	f, err := scratch.New(root)
	if err != nil {
		t.Fatal(err)
	}
	other := exec.CommandContext(t.Context(), "sleep", "1000")
	other.Env = append(os.Environ(), scratch.Variable+"="+f.Path+"-of-another", "OTHER="+f.Path)
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if found, err := f.Clear(t.Context()); len(found) > 0 || err != nil {
		t.Errorf("cleared %q, %v", found, err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Errorf("it was ended: %v", err)
	}
	_ = other.Wait() // says that it was killed
}

func TestAFolderWithoutAnOwnerIsAboutToHaveOne(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	folder := filepath.Join(root, "bai-check-new")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if found, err := scratch.Sweep(t.Context(), root); len(found) > 0 || err != nil {
		t.Errorf("swept %q, %v", found, err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(folder, old, old); err != nil {
		t.Fatal(err)
	}
	if found, err := scratch.Sweep(t.Context(), root); len(found) != 1 || err != nil {
		t.Errorf("swept %q, %v, want the old folder", found, err)
	}
}
