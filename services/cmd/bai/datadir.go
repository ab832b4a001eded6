package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// dataDir is the directory of one platform: all that it remembers lies there.
//
//	lock        held while a platform runs here; holds its process ID
//	token.key   the key of the runs' tokens
//	store.db    the store
//	broker/     the topics
//	objects/    the data sets
//	pods/       the pods that run, and their supervisors' states
type dataDir struct {
	path string
	lock *os.File
}

// defaultDataDir returns where the data lie if nobody says: below
// XDG_DATA_HOME, or ~/.local/share.
func defaultDataDir() string {
	if base := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "bai")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "bai-data"
	}
	return filepath.Join(home, ".local", "share", "bai")
}

// openDataDir makes the directory if need be, for this user alone, and takes
// its lock. A second platform on one directory is refused.
func openDataDir(path string) (*dataDir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w; choose another with --data", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the data directory: %w; choose another with --data", err)
	}
	if err := take(lock); err != nil {
		holder := holder(lock)
		return nil, errors.Join(fmt.Errorf("data directory %s is used by another platform%s: stop it, or choose another directory with --data", path, holder), lock.Close())
	}
	d := &dataDir{path: path, lock: lock}
	if err := d.sign(); err != nil {
		return nil, errors.Join(fmt.Errorf("take the data directory's lock: %w", err), d.close())
	}
	return d, nil
}

// lockPatience is how long a lock may be held by what a platform that was killed
// was about to start: such a process has the lock too until it is begun.
const lockPatience = 2 * time.Second

// take takes the lock, and waits for it a little.
func take(lock *os.File) error {
	for until := time.Now().Add(lockPatience); ; time.Sleep(10 * time.Millisecond) {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(until) {
			return err
		}
	}
}

// holder returns who has written itself into the lock, for people.
func holder(lock *os.File) string {
	b := make([]byte, 32)
	n, _ := lock.ReadAt(b, 0) // an empty lock has no holder to name
	if pid := strings.TrimSpace(string(b[:n])); pid != "" {
		return " (process " + pid + ")"
	}
	return ""
}

// sign writes this process into the lock.
func (d *dataDir) sign() error {
	if err := d.lock.Truncate(0); err != nil {
		return err
	}
	_, err := d.lock.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	return err
}

// in returns the path of what lies in the directory.
func (d *dataDir) in(name string) string { return filepath.Join(d.path, name) }

// keyFile returns the path of the key of the runs' tokens, made when it is first
// asked for.
func (d *dataDir) keyFile() (string, error) {
	path := d.in("token.key")
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return path, nil
	}
	key := rand.Text() + rand.Text()
	if err := os.WriteFile(path+".new", []byte(key+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write the key of the runs' tokens: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return "", fmt.Errorf("write the key of the runs' tokens: %w", err)
	}
	return path, nil
}

// close gives the lock back.
func (d *dataDir) close() error { return d.lock.Close() }
