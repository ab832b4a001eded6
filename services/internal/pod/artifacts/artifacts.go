// Package artifacts finds the files that a benchmark left to be kept: for the
// wrapper, which copies them, and for the collector where no wrapper could.
package artifacts

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

// maxFiles is how many files an artifact may have.
const maxFiles = 10_000

// File is a file that is to be kept.
type File struct {
	Root string // a folder that links in Path do not lead out of
	Path string // below it
	Name string // by which it is kept

	size  int64
	state FileState // when it was found
}

// Size is how many bytes it had when it was found.
func (f File) Size() int64 { return f.size }

// Find returns the files of an artifact, by name, and notices about the skipped ones.
// Links are followed to files, unless they lead out of the folder of the artifact's path.
func Find(a pod.Artifact) (files []File, notices []string) {
	matches := []string{a.Path}
	if _, err := os.Lstat(a.Path); err != nil {
		if matches, err = filepath.Glob(a.Path); err != nil {
			return nil, []string{badPatternNotice(a)}
		}
	}
	return selectFiles(a, matches, walk)
}

// FindInVolume is Find for a process that sees a volume at dir and the benchmark sees it
// at path, with the artifact below. Whatever the benchmark has written there, no file
// comes from outside of dir.
func FindInVolume(a pod.Artifact, path, dir string) (files []File, notices []string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, []string{skippedNotice(a, err)}
	}
	defer root.Close() //nolint:errcheck // only a handle
	rel := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(filepath.Clean(a.Path), path), "/"))
	if rel == "" {
		rel = "."
	}
	matches := []string{rel}
	if _, err := root.Lstat(rel); err != nil {
		if matches, err = fs.Glob(root.FS(), rel); err != nil {
			return nil, []string{badPatternNotice(a)}
		}
	}
	return selectFiles(a, matches, func(match string, skipped *skippedEntries) ([]File, error) {
		return filesBelow(root, match, skipped,
			func(p string) File { return File{Root: dir, Path: p, Name: archiveName(filepath.Join(path, p))} })
	})
}

func badPatternNotice(a pod.Artifact) string {
	return fmt.Sprintf("artifact %q is not kept: it is no pattern for files", a.Path)
}

func skippedNotice(a pod.Artifact, err error) string {
	return fmt.Sprintf("artifact %q is not kept: %v", a.Path, err)
}

// selectFiles returns the files of all that an artifact's path matches, as far as they
// are to be kept.
func selectFiles(a pod.Artifact, matches []string,
	files func(match string, skipped *skippedEntries) ([]File, error),
) (all []File, notices []string) {
	slices.Sort(matches)
	size := int64(0)
	var skipped skippedEntries
	for _, m := range matches {
		found, err := files(m, &skipped)
		if err != nil {
			return nil, []string{skippedNotice(a, err)}
		}
		for _, f := range found {
			size += f.size
		}
		if all = append(all, found...); len(all) > maxFiles {
			return nil, []string{fmt.Sprintf("artifact %q is not kept: it has more than %d files", a.Path, maxFiles)}
		}
	}
	if text := skipped.notice(a); text != "" {
		notices = append(notices, text)
	}
	switch {
	case len(all) == 0 && len(notices) == 0 && !a.Quiet:
		notices = append(notices, fmt.Sprintf("artifact %q is not kept: the benchmark left no such file", a.Path))
	case a.MaxSize > 0 && size > a.MaxSize:
		return nil, append(notices,
			fmt.Sprintf("artifact %q is not kept: it has %d bytes, more than its max_size, %d", a.Path, size, a.MaxSize))
	}
	return all, notices
}

// walk returns the files at a path: it, or those in it.
func walk(path string, skipped *skippedEntries) ([]File, error) {
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
	return filesBelow(root, start, skipped,
		func(p string) File { return File{Root: base, Path: p, Name: archiveName(filepath.Join(base, p))} })
}

// filesBelow returns the files at a path below a folder, and notes the skipped entries.
func filesBelow(root *os.Root, start string, skipped *skippedEntries, file func(path string) File) (files []File, err error) {
	err = fs.WalkDir(root.FS(), start, func(p string, d fs.DirEntry, err error) error {
		if err != nil && p != start {
			skipped.add(p, unreadableReason(p))
			return fs.SkipDir
		}
		if err != nil || d.IsDir() {
			return err
		}
		if len(files) > maxFiles {
			return fs.SkipAll
		}
		info, err := root.Stat(p)
		if reason := notFileReason(p, d, info, err); reason != "" {
			skipped.add(p, reason)
			return nil
		}
		f := file(p)
		f.size, f.state = info.Size(), StateOf(info)
		files = append(files, f)
		return nil
	})
	return files, err
}

// archiveName is the name of a stored file: its path relative to the root of the file
// system.
func archiveName(path string) string {
	if filepath.IsLocal(path) {
		return filepath.Clean(path)
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return strings.TrimPrefix(path, "/")
}

// Open opens a file to be read.
func (f File) Open() (*os.File, error) {
	root, err := os.OpenRoot(f.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only a handle
	return root.Open(f.Path)
}

// CopyTo copies a file, whole or not at all. Everybody may read the copy.
func (f File) CopyTo(path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // the collector may be somebody else
		return err
	}
	src, err := f.Open()
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
