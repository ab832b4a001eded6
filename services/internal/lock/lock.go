//go:build unix

// Package lock gives a directory to one process at a time.
package lock

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// AcquireTimeout is how long Acquire waits for a held lock. A child that a killed process
// was about to start holds the process's locks, too, until it has started.
const AcquireTimeout = 2 * time.Second

// retryInterval is that between two attempts.
const retryInterval = 5 * time.Millisecond

// Lock is held until it is closed or the process ends, however it ends.
type Lock struct{ file *os.File }

// HeldError says that another process holds a lock.
type HeldError struct {
	Path   string
	Holder int // process ID; 0 where it is not known
}

// Error implements error.
func (e *HeldError) Error() string {
	if e.Holder == 0 {
		return e.Path + " is held by another process"
	}
	return fmt.Sprintf("%s is held by process %d", e.Path, e.Holder)
}

// Acquire takes the lock of the file at path, and writes this process's ID into it. It
// creates the file, for this user alone, if necessary; Close leaves it in place. A lock
// that is still held after AcquireTimeout is a *HeldError.
func Acquire(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("take a lock: %w", err)
	}
	if err := waitForLock(f); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = &HeldError{Path: path, Holder: readHolder(f)}
		}
		return nil, errors.Join(fmt.Errorf("take a lock: %w", err), f.Close())
	}
	if err := writeHolder(f); err != nil {
		return nil, errors.Join(fmt.Errorf("take a lock: %w", err), f.Close())
	}
	return &Lock{f}, nil
}

// Close gives the lock back.
func (l *Lock) Close() error { return l.file.Close() }

func waitForLock(f *os.File) error {
	for until := time.Now().Add(AcquireTimeout); ; time.Sleep(retryInterval) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // a file descriptor
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(until) {
			return err
		}
	}
}

// readHolder returns the process ID in the file.
func readHolder(f *os.File) int {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0) // an empty file has no holder
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	return pid
}

func writeHolder(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	return err
}
