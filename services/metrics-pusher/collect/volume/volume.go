// Package volume opens files of a pod's volumes, to which the benchmark can write.
package volume

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

// Volume is a volume of the pod, through a handle that is opened before the benchmark starts. The benchmark can write to all of it: no name
// leads out of the volume, no link to a file is followed, only regular files and FIFOs are opened, and every read has a limit.
type Volume struct{ Root *os.Root }

// Open opens the volume whose platform folder is in dir.
func Open(dir string) (*Volume, error) {
	root, err := os.OpenRoot(pod.PathIn(dir, ""))
	if err != nil {
		return nil, fmt.Errorf("open the pod's volume: %w", err)
	}
	return &Volume{root}, nil
}

// OpenState opens the volume that only the collector uses, and makes the folder of its
// files there.
func OpenState(dir string) (*Volume, error) {
	v, err := Open(dir)
	if err != nil {
		return nil, err
	}
	if err := v.Root.Mkdir(path.Dir(pod.Cursor), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		v.Close()
		return nil, fmt.Errorf("prepare the collector's own volume: %w", err)
	}
	return v, nil
}

// Close closes the handle. A nil Volume is allowed.
func (v *Volume) Close() {
	if v != nil {
		_ = v.Root.Close() // only a handle
	}
}

// ErrNoFile is the error for a name that is not a regular file.
var ErrNoFile = errors.New("it is not a file")

// Open opens a regular file.
func (v *Volume) Open(name string, flag int) (*os.File, error) {
	return v.openAs(name, flag, 0)
}

// openAs opens a file of type kind, 0 for a regular file, and refuses links. With os.O_CREATE it makes a file that no other user may read.
func (v *Volume) openAs(name string, flag int, kind fs.FileMode) (*os.File, error) {
	f, err := v.Root.OpenFile(name, flag|Nonblock, 0o600)
	if err != nil {
		return nil, err
	}
	at, lerr := v.Root.Lstat(name)
	info, err := f.Stat()
	if err = errors.Join(lerr, err); err == nil && (info.Mode().Type() != kind || !os.SameFile(at, info)) {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNoFile}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Read reads a file of up to most bytes.
func (v *Volume) Read(name string, most int64) ([]byte, error) {
	f, err := v.Open(name, os.O_RDONLY)
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

// Write writes a file whole, or not at all.
func (v *Volume) Write(name string, b []byte, mode fs.FileMode) error {
	temp := name + ".tmp"
	if err := v.Root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := v.Root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	return v.Root.Rename(temp, name)
}

// FIFO opens a FIFO that every user may write to, and makes it if it does not exist.
func (v *Volume) FIFO(name string) (*os.File, error) {
	dir, err := v.Root.Open(path.Dir(name))
	if err != nil {
		return nil, err
	}
	err = errors.Join(mkfifo(dir, path.Base(name)), dir.Close())
	if err == nil {
		err = v.Root.Chmod(name, 0o666) // the benchmark may run as any user
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make %s: %w", name, err)
	}
	if info, err := v.Root.Lstat(name); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		return nil, errors.Join(fmt.Errorf("%s is there and is no pipe", name), err)
	}
	return v.openAs(name, os.O_RDWR|syscall.O_NONBLOCK, fs.ModeNamedPipe)
}

// Cause returns err without the name of the file, which does not help the user.
func Cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
