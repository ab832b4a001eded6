package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/benchmark-ai/bai/client-lib/internal/filename"
)

// ExistsError says that something is in the way.
type ExistsError struct {
	Path string
	Why  string // why the target may not be overwritten; empty where it may be
}

// Error names the path and the remedy.
func (e *ExistsError) Error() string {
	if e.Why != "" {
		return fmt.Sprintf("%s is there already, and is not overwritten: %s", e.Path, e.Why)
	}
	return fmt.Sprintf("%s is there already: --force overwrites it", e.Path)
}

// folder is a Sink that is a folder.
type folder struct {
	path  string
	temp  string
	root  *os.Root
	force bool
}

// Folder returns a sink that makes a folder at a path, of files that lie in a
// folder beside it until all of them are whole. An empty folder may be there, and
// with force another archive, which goes once the new one is whole; for all else
// it says *ExistsError.
func Folder(path string, force bool) (Sink, error) { //nolint:ireturn // one of several
	path = filepath.Clean(path)
	if err := checkFolderTarget(path, force); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp(filepath.Dir(path), "."+filepath.Base(path)+".partial-")
	if err != nil {
		return nil, err
	}
	f := &folder{path: path, temp: temp, force: force}
	if err := os.Chmod(temp, 0o755); err != nil { //nolint:gosec // as any other folder of the user's
		return nil, errors.Join(err, os.RemoveAll(temp))
	}
	if f.root, err = os.OpenRoot(temp); err != nil {
		return nil, errors.Join(err, os.RemoveAll(temp))
	}
	return f, nil
}

// checkFolderTarget returns an error if a folder may not be written.
func checkFolderTarget(path string, force bool) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &ExistsError{Path: path, Why: "it is a file, and a folder is to be written (a tar.zst has a name that ends so)"}
	}
	inside, err := os.ReadDir(path)
	if err != nil || len(inside) == 0 {
		return err
	}
	if !force {
		return &ExistsError{Path: path}
	}
	if _, err := os.Lstat(filepath.Join(path, ManifestName)); err != nil {
		return &ExistsError{Path: path, Why: "it is a folder of something else than an export"}
	}
	return nil
}

// Create implements Sink.
func (f *folder) Create(name string) (io.WriteCloser, error) {
	local, escaped := filename.On(runtime.GOOS, name)
	w, err := f.create(local)
	if err != nil && !escaped && filename.Refused(err) {
		w, err = f.create(filename.Escape(name))
	}
	if err != nil {
		return nil, withoutPath(err)
	}
	return syncedFile{w}, nil
}

func (f *folder) create(local string) (*os.File, error) {
	file := filepath.FromSlash(local)
	if err := f.root.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	return f.root.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
}

// syncedFile is a file that lies on the disk once it is closed.
type syncedFile struct{ *os.File }

// Close implements io.Closer.
func (s syncedFile) Close() error {
	err := s.Sync()
	return errors.Join(err, s.File.Close())
}

// withoutPath is an error without the name of the file in a folder that will be
// another.
func withoutPath(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// Commit implements Sink.
func (f *folder) Commit() error {
	if err := f.root.Close(); err != nil {
		return err
	}
	if err := checkFolderTarget(f.path, f.force); err != nil {
		return err
	}
	backup := f.temp + ".old"
	err := os.Rename(f.path, backup) // an empty folder, or the export that is overwritten
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	replaced := err == nil
	if err := os.Rename(f.temp, f.path); err != nil {
		if replaced {
			err = errors.Join(err, os.Rename(backup, f.path))
		}
		return err
	}
	f.temp = ""
	return os.RemoveAll(backup)
}

// Abort implements Sink.
func (f *folder) Abort() {
	_ = f.root.Close() // nothing of it is wanted
	if f.temp != "" {
		_ = os.RemoveAll(f.temp) // its name shows that it is temporary
	}
}

// folderSource is an archive that is a folder.
type folderSource struct{ path string }

// Each implements Source.
func (f folderSource) Each(use func(name string, content io.Reader) error) error {
	root, err := os.OpenRoot(f.path)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it was only read
	m, err := manifestIn(func() (io.ReadCloser, error) { return openIn(root, ManifestName) })
	if err != nil {
		return err
	}
	names := []string{ManifestName}
	for _, file := range m.Files {
		names = append(names, file.Name)
	}
	for _, name := range names {
		if err := readEntry(func() (io.ReadCloser, error) { return openIn(root, name) }, name, use); err != nil {
			return err
		}
	}
	return nil
}

// openIn opens a file of a folder that is neither a link nor a device. It may
// have its name or, where a system does not have that, its escaped one.
func openIn(root *os.Root, name string) (io.ReadCloser, error) {
	local, _ := filename.On(runtime.GOOS, name)
	file := filepath.FromSlash(local)
	info, err := root.Lstat(file)
	if err != nil && name != filename.Escape(name) {
		file = filepath.FromSlash(filename.Escape(name))
		info, err = root.Lstat(file)
	}
	if err != nil {
		return nil, missingFileError(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fault(name, 0, "is a link or something else that is no file")
	}
	r, err := root.Open(file)
	if err != nil {
		return nil, missingFileError(name, err)
	}
	return r, nil
}

// missingFileError says that a file is not there.
func missingFileError(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist) && name == ManifestName:
		return fault("", 0, "it is no export of a run, or only a part of one: it has no %s", ManifestName)
	case errors.Is(err, fs.ErrNotExist):
		return fault(name, 0, "is not there, and %s names it", ManifestName)
	}
	return err
}
