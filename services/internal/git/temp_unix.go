//go:build unix

package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// minStaleAge is how old a folder must be to be one of a process that died: a
// younger one may not be locked yet.
const minStaleAge = time.Minute

// temp makes a folder that is this process's until it is given back, and
// removes those of processes that died.
func temp() (dir string, removeDir func() error, err error) {
	clean(time.Now().Add(-minStaleAge))
	if dir, err = os.MkdirTemp("", "bai-git-"); err != nil {
		return "", nil, err
	}
	f, err := openDir(dir)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil { //nolint:gosec // a file descriptor
		return "", nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close(), os.RemoveAll(dir))
	}
	return dir, func() error { return errors.Join(os.RemoveAll(dir), f.Close()) }, nil
}

// openDir opens a folder, and neither a link nor a pipe that somebody put in its stead
// among the temporary files, which are everybody's.
func openDir(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// clean removes unlocked folders that are older. The next call retries those that it
// cannot remove.
func clean(older time.Time) {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), "bai-git-*")) // the pattern is a good one
	for _, dir := range dirs {
		f, err := openDir(dir)
		if err != nil {
			continue
		}
		info, err := f.Stat()
		if err == nil && info.ModTime().Before(older) &&
			syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil { //nolint:gosec // a file descriptor
			_ = os.RemoveAll(dir) // another's, perhaps
		}
		_ = f.Close() // it was only looked at
	}
}

const (
	reserve         = 256 << 20 // bytes of the disk that are left free, as in the object store
	spaceCheckBytes = 32 << 20  // bytes that are written between two checks of the free space
)

// tempSpace is the room that there is for a folder.
type tempSpace struct {
	dir  string
	left int // until the next look
}

// reserve says syscall.ENOSPC if n bytes more would not leave the reserve free.
func (s *tempSpace) reserve(n int) error {
	if s.left -= n; s.left >= 0 {
		return nil
	}
	s.left = spaceCheckBytes
	var st syscall.Statfs_t
	if err := syscall.Statfs(s.dir, &st); err != nil {
		return fmt.Errorf("look for free space among temporary files: %w", err)
	}
	if free := int64(st.Bavail) * int64(st.Bsize); free-reserve < int64(n) { //nolint:gosec,unconvert // the types differ by system
		return fmt.Errorf("%d bytes are free among temporary files, and %d are kept in reserve: %w", free, reserve, syscall.ENOSPC)
	}
	return nil
}
