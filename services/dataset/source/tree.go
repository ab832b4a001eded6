package source

import (
	"archive/tar"
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
)

// archive writes a folder as a Tree says.
type archive struct {
	to   *bufio.Writer
	tar  *tar.Writer
	list hash.Hash // of the list of digests
	file hash.Hash // of the file that is being written
	name string    // its name
	tree Tree
}

func newArchive(w io.Writer) *archive {
	a := &archive{to: bufio.NewWriterSize(w, 1<<20), list: sha256.New(), file: sha256.New()}
	a.tar = tar.NewWriter(a.to)
	return a
}

// begin begins a file that will have size bytes.
func (a *archive) begin(name string, size int64, executable bool) error {
	a.name, a.tree.Bytes = name, a.tree.Bytes+size
	a.file.Reset()
	mode := int64(0o644)
	if executable {
		mode = 0o755
	}
	return a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: mode})
}

// Write implements io.Writer.
func (a *archive) Write(p []byte) (int, error) {
	_, _ = a.file.Write(p) // a hash never fails
	return a.tar.Write(p)
}

// end ends the file that was begun.
func (a *archive) end() {
	a.tree.Files++
	_, _ = fmt.Fprintf(a.list, "%x  %s\n", a.file.Sum(nil), a.name)
}

// link adds a symbolic link.
func (a *archive) link(name, to string) error {
	a.name = name
	a.file.Reset()
	_, _ = io.WriteString(a.file, to) // a hash never fails
	a.end()
	return a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777})
}

// close ends the archive, and says what it holds.
func (a *archive) close() (Tree, error) {
	a.tree.SHA256 = hex.EncodeToString(a.list.Sum(nil))
	return a.tree, errors.Join(a.tar.Close(), a.to.Flush())
}
