package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/benchmark-ai/bai/services/internal/lock"
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
	lock *lock.Lock
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
	l, err := lock.Take(filepath.Join(path, "lock"))
	if held := (*lock.HeldError)(nil); errors.As(err, &held) {
		return nil, fmt.Errorf("data directory %s is used by another platform (process %d): stop it, or choose another directory with --data", path, held.Holder)
	}
	if err != nil {
		return nil, fmt.Errorf("open the data directory: %w; choose another with --data", err)
	}
	return &dataDir{path: path, lock: l}, nil
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
