package artifacts

import (
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

// maxListed is how many entries that are no files are named to the user.
const maxListed = 10

// skippedEntries are the entries of an artifact that are not kept.
type skippedEntries struct {
	count  int
	listed []string
}

func (o *skippedEntries) add(path, reason string) {
	if o.count++; len(o.listed) < maxListed {
		o.listed = append(o.listed, fmt.Sprintf("%.200q (%s)", path, reason))
	}
}

// notice describes the skipped entries of an artifact; empty without any.
func (o *skippedEntries) notice(a pod.Artifact) string {
	if o.count == 0 {
		return ""
	}
	text := strings.Join(o.listed, ", ")
	if more := o.count - len(o.listed); more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return fmt.Sprintf("artifact %q holds what cannot be kept: %s", a.Path, text)
}

// unreadableReason says why a folder is not looked into.
func unreadableReason(path string) string {
	if !utf8.ValidString(path) {
		return "the name is not UTF-8"
	}
	return "cannot be read"
}

// notFileReason is the reason why an entry is not stored as a file; empty for a file.
// Info and err are those of the link's target.
func notFileReason(path string, entry fs.DirEntry, info fs.FileInfo, err error) string {
	link := entry.Type()&fs.ModeSymlink != 0
	switch {
	case link && err != nil:
		return "a link that leads out, or nowhere"
	case err != nil:
		return unreadableReason(path)
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
