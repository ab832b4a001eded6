// Package folder copies samples to files, for notebooks and spreadsheets: one for each source of each run, as
// FOLDER/RUN/ATTEMPT-ROLE-INDEX-STREAM-ID.jsonl.
//
// A file has each sample once, in the order in which the samples came, even if samples come twice or a process is killed in between: new
// samples are appended after the last whole line. A Parquet file cannot be appended to: it is made from the file of lines when the source
// has ended, and replaces it.
package folder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/lock"
)

// Formats of files.
const (
	JSONL   = "jsonl"   // an object of JSON on each line
	CSV     = "csv"     // as RFC 4180, with a first line that names the columns
	Parquet = "parquet" // once a source has ended; JSON lines until then
)

// Settings say where files lie.
type Settings struct {
	Path   string `toml:"path"`   // of the folder, which may be shared by several processes of one machine
	Format string `toml:"format"` // jsonl, csv or parquet; empty means jsonl
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	if !filepath.IsAbs(s.Path) {
		errs = append(errs, fmt.Errorf("sinks.folder.path: %q: want an absolute path", s.Path))
	}
	switch s.Format {
	case "", JSONL, CSV, Parquet:
	default:
		errs = append(errs, fmt.Errorf("sinks.folder.format: %q, want jsonl, csv or parquet", s.Format))
	}
	return errors.Join(errs...)
}

// Sink implements sink.Sink.
type Sink struct {
	path   string
	format string

	mu    sync.Mutex
	tails map[string]tail // ends of files, as this process has left them
}

// New returns a Sink, and makes its folder.
func New(s Settings) (*Sink, error) {
	if err := os.MkdirAll(s.Path, 0o750); err != nil {
		return nil, fmt.Errorf("make the folder for samples: %w", err)
	}
	return &Sink{path: s.Path, format: s.Format, tails: make(map[string]tail)}, nil
}

// Samples implements sink.Sink.
func (s *Sink) Samples(ctx context.Context, batches []event.Metrics) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fileLock, err := lock.Acquire(filepath.Join(s.path, ".lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fileLock.Close()) }()
	for i := range batches {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.add(&batches[i]); err != nil {
			return fmt.Errorf("write samples of run %s: %w", batches[i].Run, err)
		}
	}
	return nil
}

// add adds the samples of a batch to the file of its source.
func (s *Sink) add(b *event.Metrics) error {
	base := filepath.Join(s.path, sourcePath(b))
	if s.format != Parquet {
		return s.extend(base+"."+s.extension(), b)
	}
	lines := base + "." + JSONL
	_, err := os.Stat(base + "." + Parquet)
	if err == nil { // the source had ended
		delete(s.tails, lines)
		return ignoreNotExist(os.Remove(lines))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.extend(lines, b); err != nil || b.End == nil {
		return err
	}
	if err := toParquet(lines, base+"."+Parquet); err != nil {
		return err
	}
	delete(s.tails, lines)
	return ignoreNotExist(os.Remove(lines))
}

// extension is that of files of lines.
func (s *Sink) extension() string {
	if s.format == CSV {
		return CSV
	}
	return JSONL
}

// ignoreNotExist returns err, unless it is fs.ErrNotExist.
func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// extend appends the samples of a batch that a file does not have yet.
func (s *Sink) extend(path string, b *event.Metrics) (err error) {
	if len(b.Samples) == 0 && s.format != Parquet {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640) //nolint:gosec // a group may read them
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	t, err := s.tailOf(f, path)
	if err != nil {
		return err
	}
	text, err := t.appendLines(f, b, formatOf(path))
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(text, t.size); err != nil {
		return err
	}
	t.size += int64(len(text))
	if err := f.Sync(); err != nil {
		return err
	}
	s.cacheTail(path, t)
	return nil
}

// appendLines returns the lines that follow a tail of file, and moves the tail behind them.
func (t *tail) appendLines(file io.ReaderAt, b *event.Metrics, format lineFormat) ([]byte, error) {
	var text bytes.Buffer
	if t.size == 0 {
		format.head(&text)
	}
	for i := range b.Samples {
		v := &b.Samples[i]
		if has, err := t.has(file, v, format); err != nil {
			return nil, err
		} else if has {
			continue
		}
		if err := format.put(&text, rowOf(b, v), !t.noDirection); err != nil {
			return nil, err
		}
		t.add(v)
	}
	return text.Bytes(), nil
}

// Bounds of the cache of tails.
const (
	maxTails  = 4096
	maxCached = 1 << 20 // samples in all, about 64 MiB
)

// cacheTail caches a tail. Over the bounds all others are dropped, and read from their files again.
func (s *Sink) cacheTail(path string, t tail) {
	cached := len(t.samples)
	for _, other := range s.tails {
		cached += len(other.samples)
	}
	if len(s.tails) >= maxTails || cached > maxCached {
		clear(s.tails)
	}
	s.tails[path] = t
}

// tailOf takes the tail of a file out of the cache, or reads it from the file. It cuts off a last line that a killed process did not write
// whole.
func (s *Sink) tailOf(f *os.File, path string) (tail, error) {
	info, err := f.Stat()
	if err != nil {
		return tail{}, err
	}
	t, ok := s.tails[path]
	delete(s.tails, path) // until the file has what the caller adds
	if ok && t.size == info.Size() {
		return t, nil
	}
	if t, err = readTail(f, info.Size(), formatOf(path)); err != nil {
		return tail{}, err
	}
	return t, f.Truncate(t.size)
}
