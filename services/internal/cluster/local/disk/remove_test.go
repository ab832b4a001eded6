//go:build linux

package disk_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/disk"
)

// envDeep is a folder in which a child of this test makes a deep tree, and removes it with few descriptors.
const envDeep = "BAI_TEST_DEEP"

func TestADeepTreeIsRemovedWithFewDescriptors(t *testing.T) {
	if dir := os.Getenv(envDeep); dir != "" {
		removeDeep(t, dir)
		return
	}
	t.Parallel()
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$") //nolint:gosec // this test
	child.Env = append(os.Environ(), envDeep+"="+dir)
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left %v (%v)", entries, err)
	}
}

// removeDeep makes a tree of 1,000 levels, with a file and an unreadable directory at each, and removes it with 128 descriptors.
func removeDeep(t *testing.T, dir string) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		file, err1 := unix.Openat(at, "file", unix.O_CREAT|unix.O_WRONLY, 0o600)
		if err := errors.Join(err1, unix.Close(file), unix.Mkdirat(at, "hidden", 0), unix.Mkdirat(at, "d", 0o700)); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err := errors.Join(err, unix.Close(at)); err != nil {
			t.Fatal(err)
		}
		at = next
	}
	_ = unix.Close(at)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 128, Max: 128}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"d", "file", "hidden", "missing"} {
		if err := disk.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestTheRemovalOfATreeFollowsNoLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	err := errors.Join(
		os.WriteFile(kept, nil, 0o600), os.MkdirAll(filepath.Join(dir, "tree", "a"), 0o700),
		os.Symlink(dir, filepath.Join(dir, "tree", "a", "link")), os.Symlink(dir, filepath.Join(dir, "link")),
		disk.RemoveAll(filepath.Join(dir, "tree")), disk.RemoveAll(filepath.Join(dir, "link")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "tree")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the tree is there: %v", err)
	}
}
