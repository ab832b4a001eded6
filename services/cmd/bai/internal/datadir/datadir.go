package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/internal/lock"
)

// dataDir is the directory of one platform: all that it remembers lies there.
//
//	lock        held while a platform runs here; holds its process ID
//	token.key   the key of the runs' tokens
//	seal.key    the key by which services seal what they tell each other
//	*.password  of the users of the embedded broker, which follow from that key
//	store.db    the store
//	broker/     the topics
//	objects/    the data sets
//	pods/       the pods that run, and their supervisors' states
//	reserve     room for what the platform has to write on a disk that is full
type dataDir struct {
	path string
	lock *lock.Lock

	warning string // about who can write to it; empty for none
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
// its lock. A second platform on one directory is refused, and so is a directory that
// every user of the machine can write to, and a path that is not UTF-8: the records of pods, which are JSON, cannot hold it.
func openDataDir(path string) (*dataDir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if !utf8.ValidString(path) {
		return nil, fmt.Errorf("data directory %q: the path is not UTF-8; choose another with --data", path)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w; choose another with --data", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open the data directory: %w; choose another with --data", err)
	}
	mode := uint32(info.Mode().Perm())
	if err := refuseShared(path, mode); err != nil {
		return nil, err
	}
	l, err := lock.Acquire(filepath.Join(path, "lock"))
	if held := (*lock.HeldError)(nil); errors.As(err, &held) {
		return nil, fmt.Errorf("data directory %s is used by another platform (process %d): stop it, or choose another directory with --data", path, held.Holder)
	}
	if err != nil {
		return nil, fmt.Errorf("open the data directory: %w; choose another with --data", err)
	}
	return &dataDir{path: path, lock: l, warning: warnShared(path, mode)}, nil
}

// join returns the path of what lies in the directory.
func (d *dataDir) join(name string) string { return filepath.Join(d.path, name) }

// keyFile returns the path of the key of the runs' tokens, made when it is first
// asked for.
func (d *dataDir) keyFile() (string, error) { return d.makeKey("token.key", "runs' tokens") }

// sealFile returns the path of the key of the seals, made when it is first asked for.
func (d *dataDir) sealFile() (string, error) { return d.makeKey("seal.key", "seals") }

func (d *dataDir) makeKey(name, of string) (string, error) {
	path := d.join(name)
	if text, err := os.ReadFile(path); err == nil && strings.Trim(string(text), "\x00 \n") != "" {
		return path, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the key of the %s: %w", of, err)
	}
	key := rand.Text() + rand.Text()
	if err := writeWhole(path, []byte(key+"\n")); err != nil {
		return "", fmt.Errorf("make the key of the %s: %w", of, err)
	}
	return path, nil
}

// close gives the lock back.
func (d *dataDir) close() error { return d.lock.Close() }
