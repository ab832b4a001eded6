package datadir

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
)

// Permission bits of a folder.
const (
	groupWrites  = 0o020
	othersWrite  = 0o002
	onlyTheOwner = 0o700
)

// refuseShared refuses a data folder to which every user of the machine can write,
// since any of them could replace the platform's programs.
func refuseShared(path string, mode uint32) error {
	if mode&othersWrite == 0 {
		return nil
	}
	return fmt.Errorf("data directory %s: every user of this machine can write to it (mode %04o): chmod %04o it, or choose another with --data", path, mode, onlyTheOwner)
}

// warnShared returns a warning if the group can write to a data folder, or "".
func warnShared(path string, mode uint32) string {
	if mode&groupWrites == 0 {
		return ""
	}
	return fmt.Sprintf("the group of %s can write to it (mode %04o), and so change what the platform runs: chmod %04o it",
		path, mode, mode&^groupWrites)
}

// Remedy returns a remedy for an error about a file in the data folder dir. It is empty
// if the file is outside dir, or the error has no known remedy.
func Remedy(dir, path string, err error) string {
	if rel, rerr := filepath.Rel(dir, path); rerr != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return ""
	}
	switch {
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return fmt.Sprintf("let this user read and write all of %s (chown -R), or choose another folder with --data", dir)
	case errors.Is(err, syscall.EROFS):
		return fmt.Sprintf("remount the file system of %s for writing, or choose another folder with --data", dir)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Sprintf("free some space on the disk of %s, or choose another folder with --data", dir)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.EEXIST), errors.Is(err, syscall.ELOOP):
		return fmt.Sprintf("move %s away, which is not what belongs there, or choose another folder with --data", path)
	case errors.Is(err, syscall.EIO):
		return fmt.Sprintf("the disk of %s fails: look at its health, and bring back the folder from a copy", dir)
	}
	return ""
}
