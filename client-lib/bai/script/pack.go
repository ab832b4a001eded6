// Package script packs code that is sent along with a run.
//
// A folder becomes a tar archive of its content. The same files give the same bytes on
// every machine and at every time: entries are sorted by name and have no times, owners
// or rights except the executable bit. Package bai sends the archive.
package script

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// MaxSize is how many bytes an archive can have at most, whatever the platform
// takes.
const MaxSize = 1 << 30

// Archive is code that is packed. Close it after use.
type Archive struct {
	SHA256 string // of its bytes, hex
	Size   int64  // in bytes

	Guarded []string // files and folders that were left out because they may hold secrets

	file *os.File
	temp string // to be removed; empty for a file of the user's
}

// ReadAt implements io.ReaderAt.
func (a *Archive) ReadAt(p []byte, off int64) (int, error) { return a.file.ReadAt(p, off) }

// Close releases the archive's resources.
func (a *Archive) Close() error {
	err := a.file.Close()
	if a.temp != "" {
		err = errors.Join(err, os.Remove(a.temp))
	}
	return err
}

// Pack packs the folder or file at a path. A file that is an archive already (tar, also
// compressed with gzip, bzip2 or zstd, or zip) is taken as it is.
//
// A folder's .git folders, the paths that its IgnoreFile matches, and files that may hold
// secrets (Ignore.Guards) are left out. Pack refuses a link that leads out of the folder,
// a special file, an empty folder, and more than MaxSize bytes.
func Pack(path string) (*Archive, error) {
	a, err := pack(path)
	if err != nil {
		return nil, fmt.Errorf("pack %q: %w", path, withoutPath(err))
	}
	return a, nil
}

// withoutPath is err without the path, which the caller adds.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

func pack(path string) (*Archive, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	switch {
	case info.IsDir():
		return packFolder(path)
	case !info.Mode().IsRegular():
		return nil, errors.New("it is neither a folder nor a file")
	}
	ready, err := isArchive(path)
	if err != nil {
		return nil, err
	}
	if ready {
		return hashArchive(path)
	}
	return packFile(path, info)
}

// isArchive reports whether the file at path is an archive.
func isArchive(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // it was only read
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false, err
	}
	if hasArchiveMagic(head[:n]) {
		return true, nil
	}
	if !hasArchiveSuffix(path) {
		return false, nil
	}
	return false, errors.New("it has the name of an archive and is none: one is tar, tar.gz, tar.bz2, tar.zst or zip")
}

// hashArchive sums the archive at path.
func hashArchive(path string) (*Archive, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	a := &Archive{file: f}
	if err := a.sum(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return a, nil
}

func (a *Archive) sum() error {
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(a.file, MaxSize+1))
	if err != nil {
		return err
	}
	if n > MaxSize {
		return errTooLarge
	}
	a.SHA256, a.Size = hex.EncodeToString(sum.Sum(nil)), n
	return nil
}

var errTooLarge = fmt.Errorf("it has more than %d MiB: leave out what is no code (see %s), and name data in data.sources", MaxSize>>20,
	IgnoreFile)

// packer writes an archive to a file of its own.
type packer struct {
	root *os.Root
	to   *tar.Writer
	skip Ignore

	guarded []string
	n       int   // entries
	size    int64 // of files
}

// write packs the entries that fill adds.
func write(root *os.Root, fill func(*packer) error) (*Archive, error) {
	f, err := os.CreateTemp("", "baictl-script-*.tar")
	if err != nil {
		return nil, err
	}
	a := &Archive{file: f, temp: f.Name()}
	sum := sha256.New()
	counted := &counter{to: io.MultiWriter(f, sum)}
	p := &packer{root: root, to: tar.NewWriter(counted)}
	if err := fill(p); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if err := p.to.Close(); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	a.SHA256, a.Size, a.Guarded = hex.EncodeToString(sum.Sum(nil)), counted.n, p.guarded
	return a, nil
}

// counter says errTooLarge for more than MaxSize.
type counter struct {
	to io.Writer
	n  int64
}

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	if c.n += int64(len(b)); c.n > MaxSize {
		return 0, errTooLarge
	}
	return c.to.Write(b)
}

// packFile packs one file alone.
func packFile(path string, info fs.FileInfo) (*Archive, error) {
	dir, name := filepath.Split(filepath.Clean(path))
	root, err := os.OpenRoot(filepath.Join(dir, "."))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // it was only read
	return write(root, func(p *packer) error { return p.file(name, info) })
}

func packFolder(path string) (*Archive, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // it was only read
	return write(root, func(p *packer) error {
		if err := p.ignore(); err != nil {
			return err
		}
		if err := fs.WalkDir(root.FS(), ".", p.add); err != nil {
			return err
		}
		if p.n == 0 {
			return errors.New("there is nothing in it to send along")
		}
		return nil
	})
}

// ignore reads the IgnoreFile.
func (p *packer) ignore() error {
	text, err := p.root.ReadFile(IgnoreFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return withName(IgnoreFile, err)
	}
	p.skip, err = ParseIgnore(text)
	return err
}

// add implements fs.WalkDirFunc: it packs one entry.
func (p *packer) add(name string, d fs.DirEntry, err error) error {
	if err != nil {
		return withName(name, err)
	}
	if name == "." {
		return nil
	}
	skips := p.skip.Skips(name, d.IsDir())
	if !skips && p.skip.Guards(name, d.IsDir()) {
		skips, p.guarded = true, append(p.guarded, name)
	}
	if skips {
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	switch kind := d.Type(); {
	case kind == fs.ModeDir:
		return p.header(tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755})
	case kind == fs.ModeSymlink:
		return p.link(name)
	case kind.IsRegular():
		info, err := d.Info()
		if err != nil {
			return withName(name, err)
		}
		return p.file(name, info)
	}
	return fmt.Errorf("%q is neither a file nor a folder nor a link: leave it out with a line of %s", name, IgnoreFile)
}

func (p *packer) header(h tar.Header) error {
	p.n++
	return p.to.WriteHeader(&h)
}

func (p *packer) file(name string, info fs.FileInfo) error {
	if p.size += info.Size(); p.size > MaxSize {
		return errTooLarge
	}
	f, err := p.root.Open(name)
	if err != nil {
		return withName(name, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	h := tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o644}
	if info.Mode()&0o111 != 0 {
		h.Mode = 0o755
	}
	if err := p.header(h); err != nil {
		return err
	}
	n, err := io.Copy(p.to, io.LimitReader(f, info.Size()))
	if err != nil {
		return withName(name, err)
	}
	if n != info.Size() {
		return fmt.Errorf("%q changed while it was read", name)
	}
	return nil
}

func (p *packer) link(name string) error {
	target, err := p.root.Readlink(name)
	if err != nil {
		return withName(name, err)
	}
	// The link's text decides, unless it leads through other links.
	if _, err := p.root.Stat(name); leadsOutside(name, target) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%q is a link that leads out of the folder, to %q: code that is sent along has its own files only", name, target)
	}
	return p.header(tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: filepath.ToSlash(target), Mode: 0o777})
}

// withName says that err is about something below the path that is packed.
func withName(name string, err error) error {
	if errors.Is(err, errTooLarge) {
		return err
	}
	return fmt.Errorf("%q: %w", name, withoutPath(err))
}
