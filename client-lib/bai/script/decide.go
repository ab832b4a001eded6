package script

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

// IgnoreFile is the file of a folder that says what of it is left out.
const IgnoreFile = ".baiignore"

// Ignore says what of a folder is left out. The zero value leaves out nothing but
// what always is.
type Ignore struct{ patterns []pattern }

type pattern struct {
	glob  string
	dir   bool // it means folders only
	whole bool // it is about a path from the folder, not about a name
}

// ParseIgnore reads an IgnoreFile: a pattern of path.Match on each line, for a
// name at any depth or, with a slash in it, for a path from the folder; with a
// slash at its end, for folders only. What is in a folder that is left out is
// left out. Empty lines and those that begin with # mean nothing.
func ParseIgnore(text []byte) (Ignore, error) {
	var ig Ignore
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		p := pattern{glob: strings.TrimSuffix(line, "/"), dir: strings.HasSuffix(line, "/")}
		p.whole = strings.Contains(p.glob, "/")
		p.glob = strings.TrimPrefix(p.glob, "/")
		if _, err := path.Match(p.glob, ""); err != nil || p.glob == "" || line[0] == '!' || strings.Contains(p.glob, "**") {
			return Ignore{}, fmt.Errorf("%s:%d: %q is not a pattern: * stands for any part of a name, ? for a character, [a-z] for one of some", IgnoreFile, i+1, line)
		}
		ig.patterns = append(ig.patterns, p)
	}
	return ig, nil
}

// Skips reports whether a file or folder, by its path with slashes from the
// folder that is packed, is left out: what a pattern means, a repository's own
// files, and the IgnoreFile.
func (ig Ignore) Skips(name string, dir bool) bool {
	base := path.Base(name)
	if base == ".git" || name == IgnoreFile {
		return true
	}
	for _, p := range ig.patterns {
		subject := base
		if p.whole {
			subject = name
		}
		if ok, err := path.Match(p.glob, subject); ok && err == nil && (dir || !p.dir) {
			return true
		}
	}
	return false
}

// leaves reports whether a link at name, which leads to target, leads out of the
// folder that name is a path from.
func leaves(name, target string) bool {
	target = filepath.ToSlash(target)
	return path.IsAbs(target) || filepath.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(name), target))
}

// packed reports whether a file that begins so is an archive, of a form that is
// unpacked before a benchmark starts.
func packed(head []byte) bool {
	for _, magic := range []string{"\x1f\x8b", "BZh", "\x28\xb5\x2f\xfd", "PK\x03\x04", "PK\x05\x06"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return true
		}
	}
	return len(head) >= 262 && string(head[257:262]) == "ustar"
}

// pretends reports whether a file's name is that of an archive.
func pretends(name string) bool {
	for _, end := range []string{".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.zst", ".tzst", ".zip"} {
		if strings.HasSuffix(strings.ToLower(name), end) {
			return true
		}
	}
	return false
}
