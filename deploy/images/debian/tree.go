package debian

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
)

// A Tree writes a root file system as a tar archive: of packages, and of files of one's own.
// Times are the epoch, all belongs to root, and no file has the bits setuid and setgid. Nothing
// lies below a link.
type Tree struct {
	w    *tar.Writer
	seen map[string]byte // types of the entries, by their clean names
	size int64
}

// merged are the folders of the root that are links into usr, as all of Debian has them since
// version 12. No package brings the links.
func merged() []string { return []string{"bin", "lib", "lib32", "lib64", "libx32", "sbin"} }

// NewTree begins a root file system with the folders that each has.
func NewTree(w io.Writer) (*Tree, error) {
	t := &Tree{w: tar.NewWriter(w), seen: map[string]byte{}}
	for _, name := range merged() {
		if name == "lib32" || name == "libx32" {
			continue
		}
		if err := errors.Join(t.Folder("usr/"+name, 0o755), t.Link(name, "usr/"+name)); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"dev", "etc", "proc", "run", "sys", "var"} {
		if err := t.Folder(name, 0o755); err != nil {
			return nil, err
		}
	}
	return t, errors.Join(t.Folder("root", 0o700), t.Folder("tmp", 0o1777), t.Folder("var/tmp", 0o1777))
}

// Close ends the archive.
func (t *Tree) Close() error { return t.w.Close() }

// Add adds the files of a package.
func (t *Tree) Add(file string) error {
	return open(file, func(r *tar.Reader) error {
		for n := 0; ; n++ {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("read its files: %w", err)
			}
			if n == maxEntries {
				return fmt.Errorf("it has more than %d files", maxEntries)
			}
			if err := t.entry(h, r); err != nil {
				return err
			}
		}
	})
}

// clean returns a name in the tree; empty for the root itself.
func clean(name string) (string, error) {
	rest := strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
	if rest == "." || rest == "" {
		return "", nil
	}
	if path.Clean("/"+rest) != "/"+rest || len(rest) > maxName || strings.Count(rest, "/") > maxDepth || strings.ContainsRune(rest, 0) {
		return "", fmt.Errorf("the path %.200q leads out of the package, or is too long", name)
	}
	for _, dir := range merged() {
		if rest == dir || strings.HasPrefix(rest, dir+"/") {
			return "usr/" + rest, nil
		}
	}
	return rest, nil
}

// entry adds an entry of a package.
func (t *Tree) entry(h *tar.Header, body io.Reader) error {
	name, err := clean(h.Name)
	if err != nil || name == "" {
		return err
	}
	mode := h.Mode & 0o1777
	switch h.Typeflag {
	case tar.TypeDir:
		return t.Folder(name, mode)
	case tar.TypeReg:
		return t.file(name, body, h.Size, mode)
	case tar.TypeSymlink:
		return t.Link(name, h.Linkname)
	case tar.TypeLink:
		return t.hardLink(name, h.Linkname)
	}
	return fmt.Errorf("%q is neither a file nor a folder nor a link", name)
}

// Folder adds a folder; that it is there already is no error.
func (t *Tree) Folder(name string, mode int64) error {
	if t.seen[name] == tar.TypeDir {
		return nil
	}
	return t.header(tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode}, name)
}

// File adds a file of one's own.
func (t *Tree) File(name, text string, mode int64) error {
	return t.file(name, strings.NewReader(text), int64(len(text)), mode)
}

func (t *Tree) file(name string, body io.Reader, size, mode int64) error {
	if t.size += size; size < 0 || t.size > maxUnpacked {
		return fmt.Errorf("%q: the files have more than %d GiB", name, maxUnpacked>>30)
	}
	if err := t.header(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: size}, name); err != nil {
		return err
	}
	if _, err := io.CopyN(t.w, body, size); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	return nil
}

// Link adds a symbolic link.
func (t *Tree) Link(name, target string) error {
	if target == "" || len(target) > maxName || strings.ContainsRune(target, 0) || climbs(name, target) {
		return fmt.Errorf("the link %q leads out of the tree, to %.200q", name, target)
	}
	return t.header(tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}, name)
}

// climbs reports whether a relative link leads above the root.
func climbs(name, target string) bool {
	if strings.HasPrefix(target, "/") {
		return false
	}
	depth := strings.Count(name, "/")
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			depth--
		default:
			depth++
		}
		if depth < 0 {
			return true
		}
	}
	return false
}

// hardLink adds a second name of a file.
func (t *Tree) hardLink(name, target string) error {
	first, err := clean(target)
	if err != nil {
		return err
	}
	if t.seen[first] != tar.TypeReg {
		return fmt.Errorf("%q is a second name of %q, which is no file before it", name, first)
	}
	return t.header(tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: first, Mode: 0o644}, name)
}

// header adds the header of an entry, after those of the folders in which it lies.
func (t *Tree) header(h tar.Header, name string) error {
	if parent := path.Dir(name); parent != "." {
		if err := t.Folder(parent, 0o755); err != nil {
			return err
		}
	}
	if t.seen[name] != 0 {
		return fmt.Errorf("%q is there already", name)
	}
	t.seen[name] = h.Typeflag
	h.ModTime = time.Unix(0, 0)
	return t.w.WriteHeader(&h)
}
