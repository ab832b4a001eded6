package script

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

// IgnoreFile is the file of a folder that lists the paths to leave out.
const IgnoreFile = ".baiignore"

// Ignore selects the paths of a folder to leave out. The zero value leaves out only the
// paths that are always left out.
type Ignore struct{ patterns []pattern }

type pattern struct {
	glob     string
	dir      bool // it means folders only
	anchored bool // it is about a path from the folder, not about a name
	keep     bool // overrides the protection of files that may hold secrets
}

// ParseIgnore reads an IgnoreFile: a pattern of path.Match on each line, for a name at
// any depth or, with a slash in it, for a path from the folder; with a slash at its end,
// for folders only. The content of an ignored folder is ignored. An exclamation mark
// before a pattern includes the matching paths although they may hold secrets. Empty
// lines and those that begin with # are skipped.
func ParseIgnore(text []byte) (Ignore, error) {
	var ig Ignore
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		glob, keep := strings.CutPrefix(line, "!")
		p := pattern{glob: strings.TrimSuffix(glob, "/"), dir: strings.HasSuffix(glob, "/"), keep: keep}
		p.anchored = strings.Contains(p.glob, "/")
		p.glob = strings.TrimPrefix(p.glob, "/")
		if _, err := path.Match(p.glob, ""); err != nil || p.glob == "" || strings.Contains(p.glob, "**") {
			return Ignore{}, fmt.Errorf(
				"%s:%d: %q is not a pattern: * stands for any part of a name, ? for a character, [a-z] for one of some", IgnoreFile, i+1,
				line)
		}
		ig.patterns = append(ig.patterns, p)
	}
	return ig, nil
}

// Skips reports whether a file or folder is left out: a path that a pattern matches, a
// repository's own files, and the IgnoreFile. The name is the path with slashes from the
// packed folder.
func (ig Ignore) Skips(name string, dir bool) bool {
	base := path.Base(name)
	if base == ".git" || name == IgnoreFile {
		return true
	}
	return ig.matches(name, dir, false)
}

// matches reports whether a pattern means a file or folder, of those that have
// something sent or of the others.
func (ig Ignore) matches(name string, dir, keep bool) bool {
	for _, p := range ig.patterns {
		subject := path.Base(name)
		if p.anchored {
			subject = name
		}
		if ok, err := path.Match(p.glob, subject); ok && err == nil && p.keep == keep && (dir || !p.dir) {
			return true
		}
	}
	return false
}

// Guards reports whether a file or folder is left out because it may hold secrets: a
// .env, a private key, a tool's credentials. The IgnoreFile can include it.
func (ig Ignore) Guards(name string, dir bool) bool {
	return isSecretName(path.Base(name), dir) && !ig.matches(name, dir, true)
}

// isSecretName reports whether a file or folder of that name may hold secrets.
func isSecretName(base string, dir bool) bool {
	if dir {
		switch base {
		case ".aws", ".azure", ".docker", ".gcloud", ".gnupg", ".kube", ".ssh":
			return true
		}
		return false
	}
	switch base {
	case ".env.example", ".env.sample", ".env.template":
		return false
	case ".env", ".envrc", ".git-credentials", ".netrc", "_netrc", ".pypirc", ".pgpass":
		return true
	}
	end := strings.ToLower(path.Ext(base))
	key := strings.HasPrefix(base, "id_") && end == "" // id_rsa, id_ed25519; not id_map.py, id_rsa.pub
	return key || strings.HasPrefix(base, ".env.") || end == ".pem" || end == ".p12" || end == ".pfx"
}

// leadsOutside reports whether a link at name, which leads to target, leads out of the
// folder that name is a path from.
func leadsOutside(name, target string) bool {
	target = filepath.ToSlash(target)
	return path.IsAbs(target) || filepath.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(name), target))
}

// hasArchiveMagic reports whether a file that begins so is an archive, of a form that is
// unpacked before a benchmark starts.
func hasArchiveMagic(head []byte) bool {
	for _, magic := range []string{"\x1f\x8b", "BZh", "\x28\xb5\x2f\xfd", "PK\x03\x04", "PK\x05\x06"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return true
		}
	}
	return len(head) >= 262 && string(head[257:262]) == "ustar"
}

// hasArchiveSuffix reports whether a file's name is that of an archive.
func hasArchiveSuffix(name string) bool {
	for _, end := range []string{".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.zst", ".tzst", ".zip"} {
		if strings.HasSuffix(strings.ToLower(name), end) {
			return true
		}
	}
	return false
}
