// Package download puts files that were kept of a run onto the disk: whole and
// checked, or not at all.
package download

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"runtime"

	"github.com/benchmark-ai/bai/client-lib/internal/filename"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// A Checker reads a file's bytes and verifies their digest.
type Checker struct {
	artifact *baiv1.Artifact
	sum      hash.Hash
	done     int64
}

// Check returns a Checker that has read nothing.
func Check(a *baiv1.Artifact) *Checker { return &Checker{artifact: a, sum: sha256.New()} }

// Write implements io.Writer.
func (c *Checker) Write(p []byte) (int, error) {
	c.done += int64(len(p))
	return c.sum.Write(p)
}

// Err is a DamagedError if the bytes differ from the stored file.
func (c *Checker) Err() error {
	if c.done != c.artifact.GetSize() {
		return &DamagedError{c.artifact.GetName(), fmt.Sprintf("it has %d bytes, it had %d", c.done, c.artifact.GetSize())}
	}
	if got := hex.EncodeToString(c.sum.Sum(nil)); got != c.artifact.GetSha256() {
		return &DamagedError{c.artifact.GetName(), fmt.Sprintf("its sha256 is %s, it was %s", got, c.artifact.GetSha256())}
	}
	return nil
}

// A Saver saves files below a folder, and nowhere else, whatever links there
// are in it.
type Saver struct {
	Root  *os.Root
	Force bool // overwrite existing files
	// Read returns the bytes of a file from an offset on.
	Read func(name string, offset int64) iter.Seq2[[]byte, error]
	// OnProgress, if not nil, is called with the bytes stored so far.
	OnProgress func(done int64)
}

// An ExistsError says that another file is in the way.
type ExistsError struct{ Path string }

// Error says which.
func (e *ExistsError) Error() string {
	return fmt.Sprintf("%s is there already and is another file (overwrite it: --force)", e.Path)
}

// A DamagedError is a file that differs from the stored artifact.
type DamagedError struct{ Name, Why string }

// Error says which, and why.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("artifact %q arrived damaged: %s", e.Name, e.Why)
}

// Saved says where a file is.
type Saved struct {
	Path    string // below the folder, with slashes
	Already bool   // it was there before
}

// Save downloads a file. It resumes an interrupted Save, and leaves a file with the same
// content as it is. Save escapes a name that the system or the disk does not allow, as
// filename.Escape does it.
func (s Saver) Save(a *baiv1.Artifact) (Saved, error) {
	if err := CheckName(a.GetName()); err != nil {
		return Saved{}, err
	}
	local, escaped := filename.On(runtime.GOOS, a.GetName())
	saved, err := s.save(a, local)
	if err != nil && !escaped && filename.Refused(err) {
		return s.save(a, filename.Escape(a.GetName()))
	}
	return saved, err
}

func (s Saver) save(a *baiv1.Artifact, local string) (Saved, error) {
	same, err := s.exists(a, local)
	if same || err != nil {
		return Saved{Path: local, Already: same}, err
	}
	if err := s.Root.MkdirAll(path.Dir(local), 0o755); err != nil {
		return Saved{}, fmt.Errorf("save artifact %q: %w", a.GetName(), err)
	}
	part := partial(local, a.GetSha256())
	if err := s.fetch(a, part); err != nil {
		return Saved{}, err
	}
	if err := s.move(part, local); err != nil {
		return Saved{}, fmt.Errorf("save artifact %q: %w", a.GetName(), err)
	}
	return Saved{Path: local}, nil
}

// exists reports whether the file is complete already. Another file in its place is an
// ExistsError, unless it may be overwritten.
func (s Saver) exists(a *baiv1.Artifact, local string) (bool, error) {
	info, err := s.Root.Lstat(local)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("save artifact %q: %w", a.GetName(), err)
	}
	if info.Mode().IsRegular() && info.Size() == a.GetSize() && s.sum(local) == a.GetSha256() {
		return true, nil
	}
	if !s.Force || info.IsDir() {
		return false, &ExistsError{Path: path.Join(s.Root.Name(), local)}
	}
	return false, nil
}

// sum is the digest of a file; empty where it cannot be read.
func (s Saver) sum(name string) string {
	f, err := s.Root.Open(name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // it was only read
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// fetch completes and verifies part. It removes damaged bytes, and keeps an interrupted
// download to resume it.
func (s Saver) fetch(a *baiv1.Artifact, part string) error {
	f, err := s.Root.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("save artifact %q: %w", a.GetName(), err)
	}
	b := partialDownload{saver: s, artifact: a, file: f, check: Check(a)}
	err = b.run()
	if closing := f.Close(); err == nil && closing != nil {
		err = fmt.Errorf("save artifact %q: %w", a.GetName(), closing)
	}
	if _, damaged := errors.AsType[*DamagedError](err); damaged || err != nil && b.check.done == 0 {
		_ = s.Root.Remove(part) // the next one would throw it away
	}
	return err
}

// A bringing is one file on its way.
type partialDownload struct {
	saver    Saver
	artifact *baiv1.Artifact
	file     *os.File
	check    *Checker
}

func (b *partialDownload) run() error {
	if err := b.resume(); err != nil {
		return fmt.Errorf("save artifact %q: %w", b.artifact.GetName(), err)
	}
	for piece, err := range b.saver.Read(b.artifact.GetName(), b.check.done) {
		if err != nil {
			return err
		}
		if err := b.add(piece); err != nil {
			return err
		}
	}
	if err := b.check.Err(); err != nil {
		return err
	}
	if err := b.file.Sync(); err != nil {
		return fmt.Errorf("save artifact %q: %w", b.artifact.GetName(), err)
	}
	return nil
}

// resume reads the bytes of an earlier try.
func (b *partialDownload) resume() error {
	n, err := io.Copy(b.check, b.file)
	if err != nil {
		return err
	}
	if n > b.artifact.GetSize() {
		b.check = Check(b.artifact)
		if err := b.file.Truncate(0); err != nil {
			return err
		}
	}
	_, err = b.file.Seek(b.check.done, io.SeekStart)
	return err
}

func (b *partialDownload) add(piece []byte) error {
	if b.check.done+int64(len(piece)) > b.artifact.GetSize() {
		return &DamagedError{b.artifact.GetName(), fmt.Sprintf("it has more than the %d bytes that it had", b.artifact.GetSize())}
	}
	n, err := b.file.Write(piece)
	_, _ = b.check.Write(piece[:n]) // a digest takes everything
	if err != nil {
		return fmt.Errorf("save artifact %q: %w", b.artifact.GetName(), err)
	}
	if b.saver.OnProgress != nil {
		b.saver.OnProgress(b.check.done)
	}
	return nil
}

// move gives a whole file its name, over no other file unless that is wanted.
func (s Saver) move(part, name string) error {
	if s.Force {
		return s.Root.Rename(part, name)
	}
	err := s.Root.Link(part, name)
	if errors.Is(err, fs.ErrExist) {
		return &ExistsError{Path: path.Join(s.Root.Name(), name)}
	}
	if err != nil { // a disk without links: the file did not exist before
		return s.Root.Rename(part, name)
	}
	return s.Root.Remove(part)
}
