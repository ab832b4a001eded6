package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// TestADiskThatIsFullOrReadOnlyIsSaidSoAndNothingIsLost runs a process with a small file system of its own, which disappears with it.
func TestADiskThatIsFullOrReadOnlyIsSaidSoAndNothingIsLost(t *testing.T) {
	c := exec.CommandContext(t.Context(), os.Args[0], t.TempDir()) //nolint:gosec // this very program
	c.Env = append(os.Environ(), envRole+"=disk")
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := c.CombinedOutput()
	if c.Process == nil || strings.Contains(string(out), noMounts) {
		t.Skipf("this kernel lets us have no file system of our own: %v %s", err, out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

const noMounts = "cannot mount"

// exerciseFullDisk fills a disk, empties it again, and makes it read-only.
func exerciseFullDisk(dir string) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		return fmt.Errorf("%s: %w", noMounts, err)
	}
	path, filler := filepath.Join(dir, "store.db"), filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); err != nil {
		return err
	}
	s, err := sqlite.Open(context.Background(), path)
	if err != nil {
		return err
	}
	n, err := fill(s, 0)
	if err := wantErrorText(err, "the disk is full", "free some space", path); err != nil {
		return err
	}
	if err := checkLines(s, n); err != nil {
		return err
	}
	if err := os.Remove(filler); err != nil {
		return err
	}
	more, err := fill(s, n)
	if err := wantErrorText(err, "the disk is full"); err != nil {
		return err
	}
	if more < n+500 {
		return fmt.Errorf("with 1 MiB of space again there were %d lines more", more-n)
	}
	if err := checkLines(s, more); err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("%s: %w", noMounts, err)
	}
	_, err = sqlite.Open(context.Background(), path)
	return wantErrorText(err, "may not be written", "permissions", path)
}

// fill appends lines from number n on until there is an error, and returns the number of the first line that is not stored.
func fill(s *sqlite.Store, n int) (int, error) {
	for ; n < 1<<20; n += 500 {
		if err := s.AppendLines(context.Background(), []store.Lines{{Origin: storetest.NewOrigin("r", "p"), Lines: numbered(n, 500)}}); err != nil {
			return n, err
		}
	}
	return n, nil
}

// checkLines checks that n lines are stored, and that the file is not damaged.
func checkLines(s *sqlite.Store, n int) error {
	streams, err := s.Streams(context.Background(), "r")
	if err != nil {
		return err
	}
	if len(streams) != 1 || streams[0].Stored != int64(n) {
		return fmt.Errorf("%d lines were stored, there are %+v", n, streams)
	}
	return s.CheckIntegrity(context.Background())
}

func wantErrorText(err error, words ...string) error {
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			return fmt.Errorf("error %w, which does not say %q", err, w)
		}
	}
	return nil
}
