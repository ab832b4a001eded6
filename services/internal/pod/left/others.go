package left

import (
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

// maxNamed is how many entries that are no files are named to the user.
const maxNamed = 10

// others are the entries of an artifact that are not kept.
type others struct {
	n     int
	named []string
}

func (o *others) add(path, why string) {
	if o.n++; len(o.named) < maxNamed {
		o.named = append(o.named, fmt.Sprintf("%.200q (%s)", path, why))
	}
}

// notice says what of an artifact is not kept; nothing where all is.
func (o *others) notice(a pod.Artifact) string {
	if o.n == 0 {
		return ""
	}
	text := strings.Join(o.named, ", ")
	if more := o.n - len(o.named); more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return fmt.Sprintf("artifact %q holds what cannot be kept: %s", a.Path, text)
}

// unread says why a folder is not looked into.
func unread(path string) string {
	if !utf8.ValidString(path) {
		return "the name is not UTF-8"
	}
	return "cannot be read"
}

// noFile says why an entry is not kept as a file; nothing where it is. Info and
// err are those of what it leads to.
func noFile(path string, entry fs.DirEntry, info fs.FileInfo, err error) string {
	link := entry.Type()&fs.ModeSymlink != 0
	switch {
	case link && err != nil:
		return "a link that leads out, or nowhere"
	case err != nil:
		return unread(path)
	case link && info.IsDir():
		return "a link to a folder"
	case !utf8.ValidString(path):
		return "the name is not UTF-8"
	}
	return kindOf(info.Mode())
}

func kindOf(mode fs.FileMode) string {
	if mode.IsRegular() {
		return ""
	}
	if mode.Type() == fs.ModeNamedPipe {
		return "a FIFO"
	}
	if mode.Type() == fs.ModeSocket {
		return "a socket"
	}
	return "a device"
}
