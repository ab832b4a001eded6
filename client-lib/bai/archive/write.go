package archive

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
)

// Sink is where an archive is written: see Folder and Tar. It is used by one
// goroutine.
type Sink interface {
	// Create begins a file; its end is the writer's Close. Several may be open.
	Create(name string) (io.WriteCloser, error)
	// Commit publishes the archive under its name and replaces an old one. Before Commit
	// no reader takes the files for an archive.
	Commit() error
	// Abort removes the written files, unless Commit has returned nil.
	Abort()
}

// Writer writes an archive: Write all files, then Finish. It is used by one
// goroutine.
type Writer struct {
	sink     Sink
	manifest Manifest
	names    map[string]bool
	file     *outputFile // that is being written
	rows     *splitter
	derived  deriver // files derived from this one; nil for none
}

// deriver makes other files of the rows of one.
type deriver interface {
	row(n int, text []byte) error
	end() error
}

// NewWriter returns a writer of an archive. Of about its Files mean nothing.
func NewWriter(sink Sink, about Manifest) *Writer {
	about.Files = nil
	return &Writer{sink: sink, manifest: about, names: map[string]bool{ManifestName: true}}
}

// outputFile is a file that is written.
type outputFile struct {
	name string
	to   io.WriteCloser
	buf  *bufio.Writer
	sum  hash.Hash
	size int64
}

// Write implements io.Writer.
func (o *outputFile) Write(p []byte) (int, error) {
	n, err := o.buf.Write(p)
	o.sum.Write(p[:n])
	o.size += int64(n)
	if err != nil {
		return n, fmt.Errorf("write %s: %w", o.name, err)
	}
	return n, nil
}

func (w *Writer) create(name string) (*outputFile, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if w.names[name] {
		return nil, fault(name, 0, "there are two files of this name")
	}
	w.names[name] = true
	to, err := w.sink.Create(name)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	return &outputFile{name: name, to: to, buf: bufio.NewWriterSize(to, 64<<10), sum: sha256.New()}, nil
}

// close ends a file.
func (w *Writer) close(o *outputFile) error {
	err := o.buf.Flush()
	if end := o.to.Close(); err == nil {
		err = end
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", o.name, err)
	}
	w.manifest.Files = append(w.manifest.Files, File{Name: o.name, Size: o.size, SHA256: hex.EncodeToString(o.sum.Sum(nil))})
	return nil
}

// Write adds a piece to a file. Pieces of a file come one after the other; last
// says that the file ends. After an error only Abort is left.
func (w *Writer) Write(name string, data []byte, last bool) error {
	if w.file == nil {
		if err := w.begin(name); err != nil {
			return err
		}
	}
	if w.file.name != name {
		return fault(w.file.name, 0, "ends early: %q follows it", name)
	}
	if _, err := w.file.Write(data); err != nil {
		return err
	}
	if w.rows != nil {
		if _, err := w.rows.Write(data); err != nil {
			return err
		}
	}
	if !last {
		return nil
	}
	return w.end()
}

func (w *Writer) begin(name string) (err error) {
	if Derived(name) && name != resolved || name == ManifestName {
		return fault(name, 0, "is not a file that a platform sends")
	}
	if w.file, err = w.create(name); err != nil {
		return err
	}
	switch name {
	case samplesFile:
		made, err := w.table()
		if err != nil {
			return err
		}
		w.derived = made
	case linesFile:
		w.derived = &logTextDeriver{w: w}
	}
	if w.derived != nil {
		w.rows = &splitter{file: name, use: w.derived.row}
	}
	return nil
}

func (w *Writer) end() error {
	if w.rows != nil {
		if err := errors.Join(w.rows.end(), w.derived.end()); err != nil {
			return err
		}
	}
	file := w.file
	w.file, w.rows, w.derived = nil, nil, nil
	return w.close(file)
}

// Finish writes the manifest, and makes all that was written an archive.
func (w *Writer) Finish() (Manifest, error) {
	if w.file != nil {
		return Manifest{}, fault(w.file.name, 0, "ends early")
	}
	files := slices.Clone(w.manifest.Files)
	text, err := w.manifest.encode()
	if err != nil {
		return Manifest{}, err
	}
	delete(w.names, ManifestName)
	o, err := w.create(ManifestName)
	if err != nil {
		return Manifest{}, err
	}
	if _, err := o.Write(text); err != nil {
		return Manifest{}, err
	}
	if err := w.close(o); err != nil {
		return Manifest{}, err
	}
	if err := w.sink.Commit(); err != nil {
		return Manifest{}, err
	}
	m := w.manifest
	m.Files = files
	return m, nil
}

// Abort removes the written files, unless Finish has returned no error.
func (w *Writer) Abort() { w.sink.Abort() }

// csvDeriver makes metrics/samples.csv.
type csvDeriver struct {
	w   *Writer
	out *outputFile
	to  *table
}

func (w *Writer) table() (*csvDeriver, error) {
	o, err := w.create(csvFile)
	if err != nil {
		return nil, err
	}
	to, err := newTable(w.manifest.Run, o)
	return &csvDeriver{w: w, out: o, to: to}, err
}

func (s *csvDeriver) row(n int, text []byte) error {
	var one Sample
	if err := decodeLine(samplesFile, n, text, &one); err != nil {
		return err
	}
	return s.to.add(one)
}

func (s *csvDeriver) end() error {
	if err := s.to.end(); err != nil {
		return err
	}
	return s.w.close(s.out)
}

// logTextDeriver makes the text of each source.
type logTextDeriver struct {
	w      *Writer
	origin Origin // whose files are open
	open   []*outputFile
}

func (t *logTextDeriver) row(n int, text []byte) error {
	var one Line
	if err := decodeLine(linesFile, n, text, &one); err != nil {
		return err
	}
	if one.Origin != t.origin {
		if err := t.end(); err != nil {
			return err
		}
		t.origin = one.Origin
	}
	o, err := t.out(one.textName())
	if err != nil {
		return err
	}
	if _, err := io.WriteString(o, one.Text); err != nil || one.Open {
		return err
	}
	_, err = io.WriteString(o, "\n")
	return err
}

func (t *logTextDeriver) out(name string) (*outputFile, error) {
	for _, o := range t.open {
		if o.name == name {
			return o, nil
		}
	}
	o, err := t.w.create(name)
	if err == nil {
		t.open = append(t.open, o)
	}
	return o, err
}

func (t *logTextDeriver) end() error {
	for _, o := range t.open {
		if err := t.w.close(o); err != nil {
			return err
		}
	}
	t.open = nil
	return nil
}
