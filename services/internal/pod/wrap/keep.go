//go:build linux

package wrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

// maxKept is how many files an artifact may have.
const maxKept = 10_000

// keep copies the files of all artifacts to the pod's volume, where the
// collector finds them, and says which there are. What cannot be kept is said to
// the user; it fails nothing.
func (w *wrapper) keep() error {
	if len(w.settings.Keep) == 0 {
		return nil
	}
	syscall.Umask(0o022) // the collector may be somebody else
	var k pod.KeptFiles
	for _, a := range w.settings.Keep {
		files, notice := find(a)
		if notice != "" {
			k.Notices = append(k.Notices, notice)
		}
		for _, f := range files {
			if slices.Contains(k.Files, f.name) {
				continue
			}
			if err := f.copyTo(filepath.Join(pod.In(w.settings.Dir, pod.KeptDir), f.name)); err != nil {
				k.Notices = append(k.Notices, fmt.Sprintf("artifact %q is not kept: %v", f.name, err))
				continue
			}
			k.Files = append(k.Files, f.name)
		}
	}
	return w.writeJSON(pod.Kept, k)
}

// found is a file that is to be kept.
type found struct {
	root string // a folder that links in path do not lead out of
	path string // below it
	name string // by which it is kept
	size int64
}

// find returns the files of an artifact, by name, or says why there are none to
// keep. Links are followed to files, where they do not lead out of the folder
// that the artifact's path names.
func find(a pod.Artifact) (files []found, notice string) {
	matches := []string{a.Path}
	if _, err := os.Lstat(a.Path); err != nil {
		if matches, err = filepath.Glob(a.Path); err != nil {
			return nil, fmt.Sprintf("artifact %q is not kept: it is no pattern for files", a.Path)
		}
	}
	slices.Sort(matches)
	size := int64(0)
	for _, m := range matches {
		some, err := walk(m)
		if err != nil {
			return nil, fmt.Sprintf("artifact %q is not kept: %v", a.Path, err)
		}
		for _, f := range some {
			size += f.size
		}
		if files = append(files, some...); len(files) > maxKept {
			return nil, fmt.Sprintf("artifact %q is not kept: it has more than %d files", a.Path, maxKept)
		}
	}
	switch {
	case len(files) == 0 && !a.Quiet:
		return nil, fmt.Sprintf("artifact %q is not kept: the benchmark left no such file", a.Path)
	case a.MaxSize > 0 && size > a.MaxSize:
		return nil, fmt.Sprintf("artifact %q is not kept: it has %d bytes, more than its max_size, %d", a.Path, size, a.MaxSize)
	}
	return files, ""
}

// walk returns the files at a path: it, or those in it.
func walk(path string) ([]found, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	base, start := filepath.Split(filepath.Clean(path))
	if info.IsDir() {
		base, start = path, "."
	}
	if base == "" {
		base = "."
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only a handle
	var files []found
	err = fs.WalkDir(root.FS(), start, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if len(files) > maxKept {
			return fs.SkipAll
		}
		// A link that leads out, or nowhere, is no file here.
		if info, err := root.Stat(p); err == nil && info.Mode().IsRegular() {
			files = append(files, found{root: base, path: p, name: kept(filepath.Join(base, p)), size: info.Size()})
		}
		return nil
	})
	return files, err
}

// kept is the name by which a file is kept: its path, without what leads to the
// root of the file system.
func kept(path string) string {
	if filepath.IsLocal(path) {
		return filepath.Clean(path)
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return strings.TrimPrefix(path, "/")
}

// copyTo copies a file, whole or not at all.
func (f found) copyTo(path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // the collector may be somebody else
		return err
	}
	root, err := os.OpenRoot(f.root)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // only a handle
	src, err := root.Open(f.path)
	if err != nil {
		return err
	}
	defer src.Close()                                                        //nolint:errcheck // only read
	dst, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644) //nolint:gosec // the collector may be somebody else
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	if err = errors.Join(err, dst.Chmod(0o644), dst.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}

// writeJSON writes a file of the volume, by rename, as soon as there is room.
func (w *wrapper) writeJSON(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	path := pod.In(w.settings.Dir, name)
	err = w.out.whenThereIsRoom(func() error {
		return os.WriteFile(path+".tmp", b, 0o644) //nolint:gosec // others read it
	})
	if err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
