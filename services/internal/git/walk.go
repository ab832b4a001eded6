package git

import (
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Walk visits the files and links below path, in the byte order of their names;
// where path is a file, that one alone, under the empty name. Names are those of the
// commit, whatever they hold: the caller decides which ones can be files. An error of file
// or link ends the walk, and so does an object that the repository did not send. Fetch
// comes first.
func (r *Repository) Walk(path string, file func(name string, size int64, executable bool, content io.Reader) error,
	link func(name, to string) error,
) error {
	w := &walker{pack: r.pack, file: file, link: link, empty: make(map[plumbing.Hash]bool)}
	return explain(w.walk(r.commit, path))
}

// walker visits the files and links of a commit.
type walker struct {
	pack  *pack
	file  func(name string, size int64, executable bool, content io.Reader) error
	link  func(name, to string) error
	empty map[plumbing.Hash]bool // folders without files: their like may be a thousand times in one another
	files int                    // that were visited
	held  int64                  // bytes of the folders on the path to the current file
}

func (w *walker) walk(commit plumbing.Hash, path string) error {
	encoded, err := w.pack.object(plumbing.CommitObject, commit)
	if err != nil {
		return err
	}
	c, err := object.DecodeCommit(nil, encoded)
	if err != nil {
		return fmt.Errorf("commit %s: %w", commit, err)
	}
	at := object.TreeEntry{Mode: filemode.Dir, Hash: c.TreeHash}
	for _, part := range strings.FieldsFunc(path, func(c rune) bool { return c == '/' }) {
		var ok bool
		if at, ok, err = w.find(at, part); err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("commit %s has no %q: %w", commit, path, store.ErrNotFound)
		}
	}
	return w.visit("", at, 0)
}

// find returns the entry of a folder with that name, and reports whether there is one.
// Submodules count as missing.
func (w *walker) find(folder object.TreeEntry, name string) (object.TreeEntry, bool, error) {
	if folder.Mode != filemode.Dir {
		return object.TreeEntry{}, false, nil
	}
	tree, err := w.tree(folder.Hash, name)
	if err != nil {
		return object.TreeEntry{}, false, err
	}
	w.held = 0 // only the entry is kept
	for _, e := range tree.Entries {
		if e.Name == name && e.Mode != filemode.Submodule {
			return e, true, nil
		}
	}
	return object.TreeEntry{}, false, nil
}

// visit visits what is at an entry.
func (w *walker) visit(name string, e object.TreeEntry, depth int) error {
	if e.Mode == filemode.Submodule {
		return nil
	}
	if e.Mode == filemode.Dir {
		return w.folder(name, e.Hash, depth)
	}
	w.files++
	blob, err := w.pack.object(plumbing.BlobObject, e.Hash)
	if err != nil {
		return fmt.Errorf("%.200q: %w", name, err)
	}
	r, err := blob.Reader()
	if err != nil {
		return fmt.Errorf("%.200q: %w", name, err)
	}
	defer func() { _ = r.Close() }() // it was only read
	if e.Mode != filemode.Symlink {
		return w.file(name, blob.Size(), e.Mode == filemode.Executable, r)
	}
	const longest = 4096
	if blob.Size() > longest {
		return unreadableError{fmt.Errorf("link %.200q leads to a name of %d bytes, and %d are allowed", name, blob.Size(), longest)}
	}
	to, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("%.200q: %w", name, err)
	}
	return w.link(name, string(to))
}

// folder visits the files and links of a folder.
func (w *walker) folder(name string, id plumbing.Hash, depth int) error {
	if w.empty[id] {
		return nil
	}
	if depth > maxDepth {
		return unreadableError{fmt.Errorf("%.200q: folders lie more than %d deep in one another", name, maxDepth)}
	}
	files, held := w.files, w.held
	tree, err := w.tree(id, name)
	if err != nil {
		return err
	}
	if name != "" {
		name += "/"
	}
	for _, e := range tree.Entries {
		if err := w.visit(name+e.Name, e, depth+1); err != nil {
			return err
		}
	}
	w.empty[id], w.held = w.files == files, held
	return nil
}

// tree reads a folder, and counts its bytes as held.
func (w *walker) tree(id plumbing.Hash, name string) (*object.Tree, error) {
	encoded, err := w.pack.object(plumbing.TreeObject, id)
	if err != nil {
		return nil, fmt.Errorf("folder %.200q: %w", name, err)
	}
	if w.held += encoded.Size(); w.held > maxTreeBytes {
		return nil, fmt.Errorf("%w: folder %.200q and those around it list more than %d MiB of names", store.ErrTooLarge, name, maxTreeBytes>>20)
	}
	tree, err := object.DecodeTree(nil, encoded)
	if err != nil {
		return nil, fmt.Errorf("folder %.200q: %w", name, err)
	}
	return tree, nil
}
