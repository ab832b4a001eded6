//go:build unix

package blob

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// disk is the folder of a store of files; none where dir is empty.
type disk struct {
	dir     string
	reserve int64
}

// spaceCheckBytes is how much is written between two looks at the free space.
const spaceCheckBytes = 32 << 20

// room says syscall.ENOSPC if size bytes more would not leave the reserve free.
func (d disk) room(size int64) error {
	if d.dir == "" {
		return nil
	}
	free, _, err := d.freeSpace()
	if err != nil {
		return err
	}
	if free-d.reserve < size {
		return fmt.Errorf("%d bytes free in %s, %d wanted and %d kept in reserve: %w", free, d.dir, size, d.reserve, syscall.ENOSPC)
	}
	return nil
}

// freeSpace returns the disk's bytes that are free, and its total without those reserved
// for the administrator.
func (d disk) freeSpace() (free, all int64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(d.dir, &st); err != nil {
		return 0, 0, fmt.Errorf("look for free space in %s: %w", d.dir, err)
	}
	block := int64(st.Bsize)                                          //nolint:unconvert // the types differ by system
	free = int64(st.Bavail) * block                                   //nolint:gosec // likewise
	return free, (int64(st.Blocks)-int64(st.Bfree))*block + free, nil //nolint:gosec // likewise
}

// space returns the free space.
func (d disk) space() (store.Space, error) {
	if d.dir == "" {
		return store.Space{Free: -1, Total: -1}, nil
	}
	free, all, err := d.freeSpace()
	return store.Space{Free: max(free-d.reserve, 0), Total: max(all-d.reserve, 0)}, err
}

// guard returns w, which says syscall.ENOSPC once the reserve is reached.
func (d disk) guard(w io.Writer) io.Writer {
	if d.dir == "" {
		return w
	}
	return &reserveWriter{disk: d, to: w}
}

type reserveWriter struct {
	disk       disk
	to         io.Writer
	untilCheck int // until the next look
}

// Write implements io.Writer.
func (g *reserveWriter) Write(p []byte) (int, error) {
	if g.untilCheck -= len(p); g.untilCheck < 0 {
		g.untilCheck = spaceCheckBytes
		if err := g.disk.room(int64(len(p))); err != nil {
			return 0, err
		}
	}
	return g.to.Write(p)
}

// lock marks a file that is being written, for as long as its writer lives.
func lock(as func(any) bool) error {
	var f *os.File
	if !as(&f) {
		return nil
	}
	if err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// clean removes the files of dead writers. A file that a writer is about to lock may be
// removed, too: its writer then fails, and begins anew.
func (d disk) clean() error {
	if d.dir == "" {
		return nil
	}
	return errors.Join(cleanFolder(filepath.Join(d.dir, prefix)), cleanFolder(filepath.Join(d.dir, artifacts)))
}

func cleanFolder(dir string) error {
	files, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".tmp") {
			errs = append(errs, removeDead(filepath.Join(dir, f.Name())))
		}
	}
	return errors.Join(errs...)
}

func removeDead(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing was written
	if flock(f, syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil // its writer lives
	}
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how) //nolint:gosec // a descriptor is small
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
