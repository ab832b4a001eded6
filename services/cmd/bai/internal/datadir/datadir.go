// Package datadir manages the folder with all data of one platform.
package datadir

import (
	"bytes"
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

// Dir is the directory of one platform, with all its data.
//
//	lock        held while a platform runs here; holds its process ID
//	token.key   the key of the runs' tokens
//	seal.key    the key with which services sign their messages
//	*.password  of the users of the embedded broker, which follow from that key
//	store.db    the store
//	broker/     the topics
//	objects/    the data sets
//	pods/       the pods that run, and their supervisors' states
//	reserve     reserved space for the platform's writes to a full disk
type Dir struct {
	Path    string
	Warning string // warning that other users can write to it; empty for none

	lock *lock.Lock
}

// Default returns the default directory: below XDG_DATA_HOME, or ~/.local/share.
func Default() string {
	if base := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "bai")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "bai-data"
	}
	return filepath.Join(home, ".local", "share", "bai")
}

// Open creates the directory if necessary, only for this user, and takes its lock. It
// refuses a directory that another platform uses, one that every user of the machine
// can write to, and a path that is not UTF-8, because the records of pods are JSON.
func Open(path string) (*Dir, error) {
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
	return &Dir{Path: path, lock: l, Warning: warnShared(path, mode)}, nil
}

// Join returns the path of a name in the directory.
func (d *Dir) Join(name string) string { return filepath.Join(d.Path, name) }

// KeyFile returns the path of the key of run tokens. The first call creates the key.
func (d *Dir) KeyFile() (string, error) { return d.makeKey("token.key", "runs' tokens") }

// SealFile returns the path of the signing key. The first call creates the key.
func (d *Dir) SealFile() (string, error) { return d.makeKey("seal.key", "seals") }

func (d *Dir) makeKey(name, of string) (string, error) {
	path := d.Join(name)
	if text, err := os.ReadFile(path); err == nil && strings.Trim(string(text), "\x00 \n") != "" {
		return path, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the key of the %s: %w", of, err)
	}
	key := rand.Text() + rand.Text()
	if err := Write(path, []byte(key+"\n")); err != nil {
		return "", fmt.Errorf("make the key of the %s: %w", of, err)
	}
	return path, nil
}

// Close releases the lock.
func (d *Dir) Close() error { return d.lock.Close() }

// KeepPassword writes a password to a file that only its owner can read, unless the
// file has that password.
func (d *Dir) KeepPassword(name, password string) error {
	path, text := d.Join(name), []byte(password+"\n")
	info, err := os.Lstat(path)
	if is, rerr := os.ReadFile(path); err == nil && rerr == nil && bytes.Equal(is, text) && info.Mode() == 0o600 {
		return nil
	}
	if err := Write(path, text); err != nil {
		return fmt.Errorf("keep a password of the embedded broker: %w", err)
	}
	return nil
}

// Write writes a file atomically, even if the machine stops.
func Write(path string, text []byte) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) //nolint:gosec // in the data folder
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(f.Name(), path)
}
