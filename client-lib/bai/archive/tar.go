package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Suffix is how the name of a file ends that is an archive.
const Suffix = ".tar.zst"

// inMemory is how much of a file is held in memory before its size is known.
const inMemory = 1 << 20

// tarball is a Sink that is a tar.zst.
type tarball struct {
	path  string
	force bool
	file  *os.File // that will be at path
	zstd  *zstd.Encoder
	tar   *tar.Writer
	open  []*Spool
}

// Tar returns a sink that writes a file at path. Until Commit the bytes lie beside it
// under a temporary name. If the file exists and force is false, Tar returns
// *ExistsError. Each file of the archive is spooled on the disk beside it until its size
// is known.
func Tar(path string, force bool) (Sink, error) { //nolint:ireturn // one of several
	path = filepath.Clean(path)
	if err := checkFileTarget(path, force); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".partial-")
	if err != nil {
		return nil, err
	}
	t := &tarball{path: path, force: force, file: file}
	// One at a time, so that the bytes do not depend on scheduling.
	if t.zstd, err = zstd.NewWriter(file, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(4<<20)); err != nil {
		t.Abort()
		return nil, err
	}
	t.tar = tar.NewWriter(t.zstd)
	return t, file.Chmod(0o644)
}

// checkFileTarget returns an error if a file may not be written.
func checkFileTarget(path string, force bool) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return &ExistsError{Path: path, Why: "it is a folder, and a file is to be written"}
	case !force:
		return &ExistsError{Path: path}
	}
	return nil
}

// Create implements Sink.
func (t *tarball) Create(name string) (io.WriteCloser, error) {
	s := NewSpool(filepath.Dir(t.path))
	t.open = append(t.open, s)
	return &member{Spool: s, name: name, in: t}, nil
}

// member is a file of a tarball.
type member struct {
	*Spool

	name string
	in   *tarball
}

// Close implements io.Closer.
func (m *member) Close() (err error) {
	defer func() { err = errors.Join(err, m.Discard()) }()
	head := &tar.Header{Typeflag: tar.TypeReg, Name: m.name, Size: m.Size(), Mode: 0o644, ModTime: time.Unix(0, 0)}
	if err := m.in.tar.WriteHeader(head); err != nil {
		return withoutPath(err)
	}
	r, err := m.Content()
	if err != nil {
		return err
	}
	_, err = io.Copy(m.in.tar, r)
	return withoutPath(err)
}

// Commit implements Sink.
func (t *tarball) Commit() error {
	if err := errors.Join(t.tar.Close(), t.zstd.Close(), t.file.Sync()); err != nil {
		return fmt.Errorf("write %s: %w", t.path, withoutPath(err))
	}
	if err := t.file.Close(); err != nil {
		return fmt.Errorf("write %s: %w", t.path, withoutPath(err))
	}
	if err := checkFileTarget(t.path, t.force); err != nil {
		return err
	}
	if !t.force { // a file that another process created meanwhile is not overwritten
		if err := os.Link(t.file.Name(), t.path); err == nil {
			return os.Remove(t.file.Name())
		} else if errors.Is(err, fs.ErrExist) {
			return &ExistsError{Path: t.path}
		}
	}
	return os.Rename(t.file.Name(), t.path)
}

// Abort implements Sink.
func (t *tarball) Abort() {
	for _, s := range t.open {
		_ = s.Discard() // its bytes are not wanted
	}
	if t.zstd != nil {
		t.zstd.Reset(nil)
		_ = t.zstd.Close() // it writes nowhere
	}
	_ = t.file.Close()           // it may be closed
	_ = os.Remove(t.file.Name()) // it may be where it belongs
}

// Spool holds bytes until it is known how many there are: a few in memory, more
// in a file that has no name, so that nothing is left of it however the program
// ends.
type Spool struct {
	dir    string
	memory bytes.Buffer
	file   *os.File
	size   int64
}

// NewSpool returns an empty spool whose file would lie in a folder.
func NewSpool(dir string) *Spool { return &Spool{dir: dir} }

// Write implements io.Writer.
func (s *Spool) Write(p []byte) (int, error) {
	if s.file == nil && s.memory.Len()+len(p) <= inMemory {
		s.size += int64(len(p))
		return s.memory.Write(p)
	}
	if s.file == nil {
		if err := s.spill(); err != nil {
			return 0, err
		}
	}
	n, err := s.file.Write(p)
	s.size += int64(n)
	return n, withoutPath(err)
}

// spill goes on in a file.
func (s *Spool) spill() error {
	file, err := os.CreateTemp(s.dir, ".bai-spool-")
	if err != nil {
		return err
	}
	s.file = file
	if err := os.Remove(file.Name()); err != nil {
		return err
	}
	_, err = s.memory.WriteTo(file)
	return withoutPath(err)
}

// Size is how many bytes there are.
func (s *Spool) Size() int64 { return s.size }

// Content returns all bytes, from the beginning.
func (s *Spool) Content() (io.ReadSeeker, error) {
	if s.file == nil {
		return bytes.NewReader(s.memory.Bytes()), nil
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return s.file, nil
}

// Discard lets go of the bytes.
func (s *Spool) Discard() error {
	s.memory = bytes.Buffer{}
	if s.file == nil {
		return nil
	}
	file := s.file
	s.file = nil
	return file.Close()
}

// tarSource is an archive that is a tar.zst.
type tarSource struct {
	open        func() (io.ReadCloser, error)
	maxUnpacked int64 // bytes beyond which an archive that unpacks to very much more than it has is refused
}

// ratio is how many times its size an archive may unpack to that has much.
const ratio = 2000

// countingReader counts the bytes that are read.
type countingReader struct {
	io.Reader

	n int64
}

// Read implements io.Reader.
func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// bombReader ends the reading of an archive that unpacks to too much.
type bombReader struct {
	countingReader

	compressed  *countingReader
	maxUnpacked int64
}

// Read implements io.Reader.
func (g *bombReader) Read(p []byte) (int, error) {
	if g.n > g.maxUnpacked && g.n > ratio*g.compressed.n {
		return 0, fault("", 0, "it unpacks to more than %d times what it has: no export does", ratio)
	}
	return g.countingReader.Read(p)
}

// Each implements Source.
func (t tarSource) Each(use func(name string, content io.Reader) error) (err error) {
	file, err := t.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	packed := &countingReader{Reader: file}
	unpacked, err := zstd.NewReader(bufio.NewReaderSize(packed, 256<<10), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20),
		zstd.WithDecoderMaxMemory(128<<20))
	if err != nil {
		return fault("", 0, "it is not in zstd: %v", err)
	}
	defer unpacked.Close()
	r := tar.NewReader(&bombReader{countingReader: countingReader{Reader: unpacked}, compressed: packed, maxUnpacked: t.maxUnpacked})
	for n := 0; ; n++ {
		head, err := r.Next()
		switch {
		case errors.Is(err, io.EOF) && n == 0:
			return fault("", 0, "there is nothing in it")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return damagedError("", err)
		case n > maxFiles:
			return fault("", 0, "it has more than %d files", maxFiles)
		case head.Typeflag == tar.TypeDir:
			continue
		case head.Typeflag != tar.TypeReg:
			return fault(fmt.Sprintf("%.100q", head.Name), 0, "is a link or something else that is no file")
		}
		if err := CheckName(head.Name); err != nil {
			return err
		}
		if err := use(head.Name, damagedReader{r, head.Name}); err != nil {
			return err
		}
	}
}

// damagedReader turns read errors into faults of a file of the archive.
type damagedReader struct {
	io.Reader

	name string
}

// Read implements io.Reader.
func (d damagedReader) Read(p []byte) (int, error) {
	n, err := d.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = damagedError(d.name, err)
	}
	return n, err
}

// damagedError says that an archive cannot be read on.
func damagedError(name string, err error) error {
	if faultErr := (*FaultError)(nil); errors.As(err, &faultErr) {
		return faultErr
	}
	return fault(name, 0, "the archive is damaged, or cut: %v", err)
}
