package artifacts

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

// FileState tells whether a file has changed: two states of a path differ if another file lies there, or if the file was written to. The
// zero value is that of no file.
type FileState struct {
	device, inode     uint64
	size              int64
	modified, changed int64 // ns since 1970
}

// StateOf returns the state of a file.
func StateOf(info fs.FileInfo) FileState {
	s := FileState{size: info.Size(), modified: info.ModTime().UnixNano()}
	s.addSystem(info.Sys())
	return s
}

// States are files at one time, by path.
type States map[string]FileState

// StatesOf returns the states of the files that a path or pattern matches now.
func StatesOf(path string) States {
	files, _ := Find(pod.Artifact{Path: path, Quiet: true})
	all := make(States, len(files))
	for _, f := range files {
		all[f.FullPath()] = f.state
	}
	return all
}

// Unchanged reports whether a file that Find has returned was there before and is the same.
func (s States) Unchanged(f File) bool {
	before, known := s[f.FullPath()]
	return known && before == f.state
}

// FullPath is where a file lies.
func (f File) FullPath() string { return filepath.Join(f.Root, f.Path) }

// IsSame reports whether two files that Find has returned are one, by whatever paths.
func (f File) IsSame(other File) bool {
	a, errA := filepath.Abs(f.FullPath())
	b, errB := filepath.Abs(other.FullPath())
	return errA == nil && errB == nil && a == b || f.state == other.state
}

// Notice says which of the files of an artifact were there before and are the same, empty if none were: they may be those of another run.
func (s States) Notice(a pod.Artifact, files []File) string {
	var names []string
	more := 0
	for _, f := range files {
		switch {
		case !s.Unchanged(f):
		case len(names) == maxListed:
			more++
		default:
			names = append(names, fmt.Sprintf("%.200q", f.Name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := fmt.Sprintf("artifact %q has files that were there before the benchmark and have not changed: %s", a.Path, strings.Join(names, ", "))
	if more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}
