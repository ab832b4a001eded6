package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"os"
	"slices"
	"strings"
)

// Source is an archive that is read, perhaps several times.
type Source interface {
	// Each calls use with every file that the archive has, the manifest among
	// them, in any order, and returns its first error. Content is read no more
	// once use has returned.
	Each(use func(name string, content io.Reader) error) error
}

// Open returns the archive that a folder or a file is.
func Open(path string) (Source, error) { //nolint:ireturn // one of several
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return folderSource{path}, nil
	case !info.Mode().IsRegular():
		return nil, fault("", 0, "it is neither a folder nor a file")
	}
	return Packed(func() (io.ReadCloser, error) { return os.Open(path) }), nil
}

// Packed returns the archive that a tar.zst is, which open opens as often as it
// is read.
func Packed(open func() (io.ReadCloser, error)) Source { return tarSource{open, 4 << 30} } //nolint:ireturn // one of several

// Loose returns the archive whose files open opens by their names. For one that
// is not there it says fs.ErrNotExist.
func Loose(open func(name string) (io.ReadCloser, error)) Source { return looseSource{open} } //nolint:ireturn // one of several

type looseSource struct {
	open func(name string) (io.ReadCloser, error)
}

// Each implements Source.
func (l looseSource) Each(use func(name string, content io.Reader) error) error {
	return l.eachOf(func(string) bool { return true }, use)
}

// selectiveSource is a source that opens only the files that are wanted: to open one may
// take long, and the platform waits.
type selectiveSource interface {
	// eachOf does the same as Each for the files that are wanted.
	eachOf(wanted func(name string) bool, use func(name string, content io.Reader) error) error
}

// eachOf implements selectiveSource.
func (l looseSource) eachOf(wanted func(name string) bool, use func(name string, content io.Reader) error) error {
	opened := func(name string) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) {
			r, err := l.open(name)
			if err != nil {
				return nil, missingFileError(name, err)
			}
			return r, nil
		}
	}
	m, err := manifestIn(opened(ManifestName))
	if err != nil {
		return err
	}
	for _, name := range append([]string{ManifestName}, namesOf(m.Files)...) {
		if !wanted(name) {
			continue
		}
		if err := readEntry(opened(name), name, use); err != nil {
			return err
		}
	}
	return nil
}

func namesOf(files []File) []string {
	names := make([]string, 0, len(files))
	for _, f := range files {
		names = append(names, f.Name)
	}
	return names
}

// manifestIn reads the manifest before all else.
func manifestIn(open func() (io.ReadCloser, error)) (m Manifest, err error) {
	err = readEntry(open, ManifestName, func(_ string, r io.Reader) error {
		text, err := readAll(ManifestName, r, maxManifest)
		if err == nil {
			m, err = decode(text)
		}
		return err
	})
	return m, err
}

// readEntry hands out one file.
func readEntry(open func() (io.ReadCloser, error), name string, use func(name string, content io.Reader) error) (err error) {
	r, err := open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return use(name, r)
}

// readAll reads a file of at most that many bytes into memory.
func readAll(name string, r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(text)) > most {
		err = fault(name, 0, "has more than %d bytes", most)
	}
	return text, err
}

// Checked is an archive whose files all agree with its manifest.
type Checked struct {
	Manifest

	source    Source
	documents map[string][]byte
}

// Check reads the whole archive. It returns a *FormatError or a *FaultError for the first
// fault. Memory is bounded, whatever the archive holds.
func Check(source Source) (*Checked, error) {
	c := &check{seen: make(map[string]File), documents: make(map[string][]byte)}
	if err := source.Each(c.addFile); err != nil {
		return nil, err
	}
	if c.manifest == nil {
		return nil, missingFileError(ManifestName, os.ErrNotExist)
	}
	if err := c.compare(); err != nil {
		return nil, err
	}
	return &Checked{Manifest: *c.manifest, source: source, documents: c.documents}, nil
}

// check is an archive that is being checked.
type check struct {
	manifest  *Manifest
	seen      map[string]File
	documents map[string][]byte
	size      int64 // of the documents
}

// addFile looks at one file.
func (c *check) addFile(name string, content io.Reader) error {
	if _, duplicate := c.seen[name]; duplicate || name == ManifestName && c.manifest != nil {
		return fault(name, 0, "is there twice")
	}
	if name == ManifestName {
		text, err := readAll(name, content, maxManifest)
		if err != nil {
			return err
		}
		m, err := decode(text)
		c.manifest = &m
		return err
	}
	sum := &hashWriter{hash: sha256.New()}
	most := c.sizeLimit(name)
	r := io.TeeReader(io.LimitReader(content, most), sum)
	err := c.checkContent(name, r)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	if sum.size == most {
		return fault(name, 0, "has more than the %d bytes that %s says: it was changed", most-1, ManifestName)
	}
	if err != nil {
		return err
	}
	c.seen[name] = File{Name: name, Size: sum.size, SHA256: hex.EncodeToString(sum.hash.Sum(nil))}
	return nil
}

// sizeLimit is how many bytes of a file are too many, where the manifest is known
// already.
func (c *check) sizeLimit(name string) int64 {
	if c.manifest != nil {
		for _, f := range c.manifest.Files {
			if f.Name == name && f.Size < math.MaxInt64 {
				return f.Size + 1
			}
		}
	}
	return math.MaxInt64
}

// checkContent reads a file whose content has a format.
func (c *check) checkContent(name string, r io.Reader) error {
	switch {
	case Derived(name):
	case name == samplesFile:
		return rows(name, r, func(n int, text []byte) error { return decodeLine(name, n, text, new(Sample)) })
	case name == linesFile:
		return rows(name, r, func(n int, text []byte) error { return decodeLine(name, n, text, new(Line)) })
	case Document(name):
		text, err := readAll(name, r, maxDocuments-c.size)
		if err != nil {
			return err
		}
		c.size += int64(len(text))
		c.documents[name] = text
		return wellFormed(name, text)
	}
	return nil
}

// rows calls use with each line of a file.
func rows(name string, r io.Reader, use func(n int, line []byte) error) error {
	s := &splitter{file: name, use: use}
	if _, err := io.Copy(s, r); err != nil {
		return err
	}
	return s.end()
}

// wellFormed returns an error with the place where the JSON of a document is broken. The
// platform judges its meaning.
func wellFormed(name string, text []byte) error {
	switch {
	case strings.HasSuffix(name, ".jsonl"):
		return rows(name, bytes.NewReader(text), func(n int, line []byte) error { return decodeLine(name, n, line, new(json.RawMessage)) })
	case strings.HasSuffix(name, ".json"):
		var v json.RawMessage
		if err := json.Unmarshal(text, &v); err != nil {
			return fault(name, lineOf(text, err), "%s", jsonMessage(err))
		}
	}
	return nil
}

// compare compares the files with the manifest.
func (c *check) compare() error {
	for _, f := range c.manifest.Files {
		found, ok := c.seen[f.Name]
		switch {
		case !ok:
			return missingFileError(f.Name, os.ErrNotExist)
		case found.Size != f.Size:
			return fault(f.Name, 0, "has %d bytes, and %s says %d: it was changed or cut", found.Size, ManifestName, f.Size)
		case found.SHA256 != f.SHA256:
			return fault(f.Name, 0, "is not what its digest in %s says: it was changed", ManifestName)
		}
		delete(c.seen, f.Name)
	}
	for name := range c.seen {
		return fault(name, 0, "is not named in %s", ManifestName)
	}
	if _, ok := c.documents[runFile]; !ok {
		return fault(runFile, 0, "is not there: every run has one")
	}
	return nil
}

// Files returns the files that make the run: those that are imported.
func (c *Checked) Files() []File {
	return slices.DeleteFunc(slices.Clone(c.Manifest.Files), func(f File) bool { return Derived(f.Name) })
}

// Documents calls send with each document that is imported, whole.
func (c *Checked) Documents(send func(name string, data []byte, last bool) error) error {
	for _, f := range c.Files() {
		text, ok := c.documents[f.Name]
		if !ok {
			continue
		}
		if err := sendChunks(f, bytes.NewReader(text), send); err != nil {
			return err
		}
	}
	return nil
}

// Content calls send with the pieces of the wanted files. It returns a *FaultError for a
// file that has changed since the check.
func (c *Checked) Content(wanted []string, send func(name string, data []byte, last bool) error) error {
	remaining := make(map[string]File)
	for _, f := range c.Files() {
		if slices.Contains(wanted, f.Name) {
			remaining[f.Name] = f
		}
	}
	if len(remaining) == 0 {
		return nil
	}
	each := c.source.Each
	if s, ok := c.source.(selectiveSource); ok {
		each = func(use func(name string, content io.Reader) error) error {
			return s.eachOf(func(name string) bool { return remaining[name].Name != "" }, use)
		}
	}
	err := each(func(name string, content io.Reader) error {
		f, ok := remaining[name]
		if !ok {
			return nil
		}
		delete(remaining, name)
		return sendChunks(f, content, send)
	})
	for name := range remaining {
		err = errors.Join(err, fault(name, 0, "is not there any more"))
	}
	return err
}

// chunkSize is how much of a file is sent at once.
const chunkSize = 256 << 10

// sendChunks sends a file. It sends the last piece only if the file has not changed since
// the check.
func sendChunks(f File, r io.Reader, send func(name string, data []byte, last bool) error) error {
	sum := &hashWriter{hash: sha256.New()}
	buf := make([]byte, chunkSize)
	r = io.TeeReader(io.LimitReader(r, f.Size+1), sum)
	for {
		n, err := io.ReadFull(r, buf)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return fmt.Errorf("read %s: %w", f.Name, err)
		}
		if last && (sum.size != f.Size || hex.EncodeToString(sum.hash.Sum(nil)) != f.SHA256) {
			return fault(f.Name, 0, "changed while it was read")
		}
		if err := send(f.Name, bytes.Clone(buf[:n]), last); err != nil || last {
			return err
		}
	}
}

// hashWriter counts and hashes the bytes that are written.
type hashWriter struct {
	hash hash.Hash
	size int64
}

// Write implements io.Writer.
func (s *hashWriter) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	return s.hash.Write(p)
}

// Names returns the files that the manifest of an archive names; none where
// there is no manifest that can be read.
func Names(source Source) ([]string, error) {
	var names []string
	err := source.Each(func(name string, content io.Reader) error {
		if name != ManifestName {
			return nil
		}
		text, err := readAll(name, content, maxManifest)
		if err != nil {
			return err
		}
		m, err := decode(text)
		for _, f := range m.Files {
			names = append(names, f.Name)
		}
		return errors.Join(err, errStop)
	})
	if faultErr := (*FaultError)(nil); errors.As(err, &faultErr) || errors.Is(err, errStop) {
		return names, nil
	}
	return names, err
}

// errStop ends the reading of an archive.
var errStop = errors.New("enough")
