//go:build linux

// Package scratch keeps a machine clean before and after a check.
//
// A check has a folder of its own below /tmp. Its first content is the process that made
// it, by number and start time. Every process of the check carries the folder's name in
// its environment, and every file and mount that tests make lies below it, as it is their
// TMPDIR. A later check ends and removes the leftovers of checks whose process is gone,
// and nothing else.
package scratch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Variable is the environment variable that names the folder of a check.
const Variable = "BAI_CHECK"

// ownerFile says which process a folder belongs to.
const ownerFile = "owner"

// Folder is the folder of one check.
type Folder struct{ Path string }

// Root is where folders are made.
func Root() string { return "/tmp" }

// New makes the folder of a check that this process runs. The names are short:
// sockets lie below it, whose paths are bounded.
func New(root string) (*Folder, error) {
	path, err := os.MkdirTemp(root, "bai-check-")
	if err != nil {
		return nil, fmt.Errorf("make the folder of a check: %w", err)
	}
	owner := fmt.Sprintf("%d %s\n", os.Getpid(), startTime(os.Getpid()))
	err = os.WriteFile(filepath.Join(path, ownerFile), []byte(owner), 0o600)
	if err == nil {
		err = os.Chmod(path, 0o755) //nolint:gosec // servers of tests run as other users
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the folder of a check: %w", err), os.RemoveAll(path))
	}
	return &Folder{path}, nil
}

// Environ is the environment of a process of the check.
func (f *Folder) Environ() []string {
	return append(os.Environ(), Variable+"="+f.Path, "TMPDIR="+f.Path)
}

// Clear ends the processes of the check, except this one, and removes its mounts and its
// folder. It returns its findings beside the folder, as nothing should be left.
func (f *Folder) Clear(ctx context.Context) (found []string, err error) {
	return removeAllOf(ctx, f.Path)
}

// Sweep removes the leftovers below root of checks whose own process is gone, and returns
// its findings.
func Sweep(ctx context.Context, root string) (found []string, err error) {
	folders, err := filepath.Glob(filepath.Join(root, "bai-check-*"))
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, path := range folders {
		dead, err := isAbandoned(path)
		errs = append(errs, err)
		if !dead {
			continue
		}
		some, err := removeAllOf(ctx, path)
		found, errs = append(found, append([]string{"the folder " + path}, some...)...), append(errs, err)
	}
	return found, errors.Join(errs...)
}

// isAbandoned reports whether a folder belongs to this user and its process is gone.
// One without an owner is about to have one, unless it is old.
func isAbandoned(path string) (bool, error) {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || !ownedByUs(info) {
		return false, nil //nolint:nilerr // it went meanwhile, or is somebody else's
	}
	b, err := os.ReadFile(filepath.Join(path, ownerFile)) //nolint:gosec // ours
	if errors.Is(err, fs.ErrNotExist) {
		return time.Since(info.ModTime()) > time.Minute, nil
	}
	if err != nil {
		return false, err
	}
	number, start, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	pid, err := strconv.Atoi(number)
	if err != nil {
		return false, fmt.Errorf("%s/%s holds %q, want a process and its start time: remove the folder", path, ownerFile, b)
	}
	return start == "" || startTime(pid) != start, nil
}

func ownedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Getuid()
}

// removeAllOf ends and removes the processes, mounts and files of one folder, and returns
// its findings beside files.
func removeAllOf(ctx context.Context, path string) (found []string, err error) {
	killed, err := endProcesses(ctx, path)
	for _, p := range killed {
		found = append(found, "process "+p)
	}
	if err != nil {
		return found, err
	}
	mounts, err := unmount(path)
	found = append(found, mounts...)
	if err != nil {
		return found, err
	}
	if err := os.RemoveAll(path); err != nil {
		return found, fmt.Errorf("remove the folder of a check: %w", err)
	}
	return found, nil
}

// unmount unmounts the mounts below a folder, the innermost first.
func unmount(path string) (found []string, err error) {
	points, err := mountsBelow(path)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, point := range slices.Backward(points) {
		found = append(found, "mount "+point)
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil {
			errs = append(errs, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return found, errors.Join(errs...)
}

// mountsBelow returns the mount points below a folder, in the order in which they
// were made.
func mountsBelow(path string) (points []string, err error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], path+"/") {
			points = append(points, fields[4])
		}
	}
	return points, nil
}
