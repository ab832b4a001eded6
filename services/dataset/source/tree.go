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

// archive writes a folder in the form that Tree describes.
type archive struct {
	to   *bufio.Writer
	tar  *tar.Writer
	list hash.Hash // digest of the list
	file hash.Hash // digest of the current file
	name string    // name of the current file
	tree Tree
}

func newArchive(w io.Writer) *archive {
	a := &archive{to: bufio.NewWriterSize(w, 1<<20), list: sha256.New(), file: sha256.New()}
	a.tar = tar.NewWriter(a.to)
	return a
}

// begin starts a file of size bytes.
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

// end ends the current file.
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

// close ends the archive, and returns its description.
func (a *archive) close() (Tree, error) {
	a.tree.SHA256 = hex.EncodeToString(a.list.Sum(nil))
	return a.tree, errors.Join(a.tar.Close(), a.to.Flush())
}
