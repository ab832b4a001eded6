package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Maximum lengths of a file's name, and of one part of it, on all systems.
const (
	longestName = 4000
	longestPart = 255
)

// member is a file of a folder in a bucket.
type member struct {
	store.BucketObject

	name string // path in the folder
}

// arrange returns the files below prefix in a bucket as a folder, sorted by name. If
// they cannot form a folder, it returns the reason.
func arrange(name, prefix string, items []store.BucketObject) ([]member, *Error) {
	all := make([]member, 0, len(items))
	for _, it := range items {
		file := strings.TrimPrefix(it.Key, prefix)
		if file == "" || strings.HasSuffix(file, "/") && it.Size == 0 {
			continue // some tools put such an object in place of a folder
		}
		if why := whyNotFile(it, file); why != "" {
			return nil, refused("source %s: object %.200q %s", name, it.Key, why)
		}
		all = append(all, member{it, file})
	}
	slices.SortFunc(all, func(a, b member) int { return strings.Compare(a.name, b.name) })
	files := make(map[string]bool, len(all))
	for _, m := range all {
		files[m.name] = true
	}
	for _, m := range all {
		for at := strings.LastIndexByte(m.name, '/'); at > 0; at = strings.LastIndexByte(m.name[:at], '/') {
			if files[m.name[:at]] {
				return nil, refused("source %s: object %.200q is to be a file, and the folder of %.200q", name, prefix+m.name[:at], m.Key)
			}
		}
	}
	return all, nil
}

// whyNotFile returns the reason why an object cannot be the file, or "".
func whyNotFile(it store.BucketObject, file string) string {
	if it.InvalidKey {
		return "cannot be read: " + unsafeKeyText
	}
	if why := whyBadName(file); why != "" {
		return "cannot be a file: " + why
	}
	return ""
}

// unsafeKeyText is the reason why an object is not read (see
// store.BucketObject.InvalidKey).
const unsafeKeyText = "its key holds characters that cannot be asked for, or what stands for one, as __0x2f__: give it another name"

// isUnsafeKey reports whether a key has a sequence that cloud drivers read as an
// escaped character.
func isUnsafeKey(key string) bool {
	for {
		_, rest, ok := strings.Cut(key, "__0x")
		if !ok {
			return false
		}
		digits := strings.TrimLeft(rest, "0123456789abcdefABCDEF")
		if len(digits) < len(rest) && strings.HasPrefix(digits, "__") {
			return true
		}
		key = rest
	}
}

// whyBadName returns the reason why no file of a folder can have that name, or "".
func whyBadName(file string) string {
	if len(file) > longestName {
		return "its name is too long"
	}
	if strings.ContainsFunc(file, unicode.IsControl) {
		return "its name holds a control character, as a new line or a zero" // which would forge the list of digests
	}
	for part := range strings.SplitSeq(file, "/") {
		switch {
		case part == "":
			return "a part of its name is empty"
		case part == "." || part == "..":
			return fmt.Sprintf("its name leads through %q", part)
		case len(part) > longestPart:
			return "a part of its name is too long"
		}
	}
	return ""
}

// tagOf returns a tag that changes when a file in a bucket changes.
func tagOf(it store.BucketObject) string {
	return fmt.Sprintf("%d %d %s", it.Size, it.Modified.UnixNano(), it.ContentTag)
}

// tagOfAll returns a tag that changes when a folder changes.
func tagOfAll(all []member) string {
	sum := sha256.New()
	for _, m := range all {
		_, _ = fmt.Fprintf(sum, "%q %s\n", m.name, tagOf(m.BucketObject))
	}
	return "folder " + hex.EncodeToString(sum.Sum(nil))
}

// sizes returns the number of bytes in all files, and the approximate number in their
// archive.
func sizes(all []member) (bytes, archive int64) {
	const block = 512
	for _, m := range all {
		bytes += m.Size
		archive += block + (m.Size+block-1)/block*block
	}
	return bytes, archive + 2*block
}
