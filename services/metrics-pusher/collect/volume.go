package collect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

// volume is the pod's own volume, through a handle that is taken before the
// benchmark begins. The benchmark can write to all of it: no name leads out of it,
// no link is followed to a file, what is no file is not opened, and no more is read
// than a bound.
type volume struct{ root *os.Root }

func openVolume(dir string) (*volume, error) {
	root, err := os.OpenRoot(pod.PathIn(dir, ""))
	if err != nil {
		return nil, fmt.Errorf("open the pod's volume: %w", err)
	}
	return &volume{root}, nil
}

// openStateVolume opens the volume that is the collector's alone, and makes the folder of its
// files there.
func openStateVolume(dir string) (*volume, error) {
	v, err := openVolume(dir)
	if err != nil {
		return nil, err
	}
	if err := v.root.Mkdir(path.Dir(pod.Cursor), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		v.close()
		return nil, fmt.Errorf("prepare the collector's own volume: %w", err)
	}
	return v, nil
}

func (v *volume) close() {
	if v != nil {
		_ = v.root.Close() // only a handle
	}
}

// errNoFile says that something that is no regular file lies at a name.
var errNoFile = errors.New("it is not a file")

// open opens a regular file.
func (v *volume) open(name string, flag int) (*os.File, error) {
	return v.openAs(name, flag, 0)
}

// openAs opens what lies at a name if it is of a type, 0 for a regular file, and
// no link. With os.O_CREATE it makes a file that is ours alone.
func (v *volume) openAs(name string, flag int, kind fs.FileMode) (*os.File, error) {
	f, err := v.root.OpenFile(name, flag|nonblock, 0o600)
	if err != nil {
		return nil, err
	}
	at, lerr := v.root.Lstat(name)
	info, err := f.Stat()
	if err = errors.Join(lerr, err); err == nil && (info.Mode().Type() != kind || !os.SameFile(at, info)) {
		err = &fs.PathError{Op: "open", Path: name, Err: errNoFile}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// read reads a file of at most so many bytes.
func (v *volume) read(name string, most int64) ([]byte, error) {
	f, err := v.open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s has more than %d bytes", name, most)
	}
	return b, err
}

// write writes a file whole, or not at all.
func (v *volume) write(name string, b []byte, mode fs.FileMode) error {
	temp := name + ".tmp"
	if err := v.root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := v.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	return v.root.Rename(temp, name)
}

// fifo opens a FIFO that everybody may write to, and makes it where there is none.
func (v *volume) fifo(name string) (*os.File, error) {
	dir, err := v.root.Open(path.Dir(name))
	if err != nil {
		return nil, err
	}
	err = errors.Join(mkfifo(dir, path.Base(name)), dir.Close())
	if err == nil {
		err = v.root.Chmod(name, 0o666) // whoever the benchmark runs as
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make %s: %w", name, err)
	}
	if info, err := v.root.Lstat(name); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		return nil, errors.Join(fmt.Errorf("%s is there and is no pipe", name), err)
	}
	return v.openAs(name, os.O_RDWR|syscall.O_NONBLOCK, fs.ModeNamedPipe)
}

// Bounds of files that are read whole.
const (
	maxExitSize        = 1 << 20
	maxKeptFilesSize   = 64 << 20 // names of 10,000 files
	maxEnvironmentSize = 4 << 20
	maxCursorSize      = 4 << 20
	maxURLSize         = 4 << 10
)
