// Package artifact stores the files of runs.
//
// The object store has the content, under a random key that has the run's ID. A
// create-only document has the name, size and digest, and makes the complete file
// visible. So a name that comes from a pod never becomes a path, and an interrupted
// upload is never visible.
package artifact

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are the operator's settings. The zero value works.
type Settings struct {
	MaxSize  int64 `toml:"max_size"`  // maximum bytes of a file; zero means 1 GiB
	MaxTotal int64 `toml:"max_total"` // maximum bytes of all files of a run; zero means 16 GiB
	MaxFiles int   `toml:"max_files"` // maximum number of files of a run; zero means 1000
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	for _, n := range []struct {
		name  string
		value int64
	}{{"max_size", s.MaxSize}, {"max_total", s.MaxTotal}, {"max_files", int64(s.MaxFiles)}} {
		if n.value < 0 {
			errs = append(errs, fmt.Errorf("gateway.artifacts.%s: must not be negative", n.name))
		}
	}
	return errors.Join(errs...)
}

// Objects stores content.
type Objects interface {
	// Put stores the bytes that fill writes under key, which is used only once, and
	// returns their size and digests. The object becomes visible when it is complete;
	// after an error there is none. An unknown size is -1.
	Put(ctx context.Context, key string, size int64, withMD5 bool, fill func(w io.Writer) error) (store.Object, error)
	// OpenAt opens an object for reading from an offset. The error is store.ErrNotFound
	// for a missing object.
	OpenAt(ctx context.Context, key string, offset int64) (io.ReadCloser, error)
	// Delete removes an object. A missing object is not an error.
	Delete(ctx context.Context, key string) error
}

// Index stores the documents of files.
type Index interface {
	store.Docs
	store.Lister
}

// File is a file of a run.
type File struct {
	Name   string    `json:"name"`
	Object string    `json:"object"` // key of the object
	Size   int64     `json:"size"`
	SHA256 string    `json:"sha256"` // hex
	Time   time.Time `json:"time"`   // time at which the file was stored
}

// Repository stores files. Several goroutines may use it, and so may several processes
// on one store.
type Repository struct {
	settings Settings
	objects  Objects
	index    Index
	now      func() time.Time
}

// New returns a Repository. Without objects it has no files and stores none.
func New(s Settings, objects Objects, index Index, now func() time.Time) *Repository {
	s.MaxSize = cmp.Or(s.MaxSize, 1<<30)
	s.MaxTotal = cmp.Or(s.MaxTotal, 16<<30)
	s.MaxFiles = cmp.Or(s.MaxFiles, 1000)
	return &Repository{settings: s, objects: objects, index: index, now: now}
}

// Put stores body as a file of a run, and reports whether the same content was stored
// under that name before. An unknown size is -1. The error is *ContentConflictError if
// the name has other content, *NameError for an invalid name, *LimitError for too many
// bytes or files, and *BodyError for an error of body. After an error nothing is
// stored.
func (k *Repository) Put(ctx context.Context, run, name string, size int64, body io.Reader) (File, bool, error) {
	if err := CheckName(name); err != nil {
		return File{}, false, err
	}
	if k.objects == nil {
		return File{}, false, errNoObjects
	}
	existing, _, err := store.Get[File](ctx, k.index, store.KindArtifact, keyOf(run, name))
	if err == nil {
		return k.checkSame(existing, size, body)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return File{}, false, fmt.Errorf("look for artifact %q: %w", name, err)
	}
	f, err := k.write(ctx, run, name, size, body)
	if err != nil {
		return File{}, false, err
	}
	return k.commit(ctx, run, f)
}

// commit makes a file with stored content visible.
func (k *Repository) commit(ctx context.Context, run string, f File) (File, bool, error) {
	err := store.Create(ctx, k.index, store.KindArtifact, keyOf(run, f.Name), f)
	if err == nil {
		return f, false, nil
	}
	// If the store failed, the document may exist, so the object must stay.
	if !errors.Is(err, store.ErrExists) {
		return File{}, false, fmt.Errorf("keep artifact %q: %w", f.Name, err)
	}
	return k.discardDuplicate(ctx, run, f)
}

// Restore stores body as the file f that the run had on its original platform; it
// ignores f.Object. Restoring the same file again is not an error. The errors are those
// of Put; body must end with an error if its content differs from f.
func (k *Repository) Restore(ctx context.Context, run string, f File, body io.Reader) error {
	if err := CheckName(f.Name); err != nil {
		return err
	}
	if k.objects == nil {
		return errNoObjects
	}
	existing, _, err := store.Get[File](ctx, k.index, store.KindArtifact, keyOf(run, f.Name))
	if err == nil {
		_, _, err = k.checkSame(existing, f.Size, body)
		return err
	}
	if !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("look for artifact %q: %w", f.Name, err)
	}
	stored, err := k.write(ctx, run, f.Name, f.Size, body)
	if err != nil {
		return err
	}
	stored.Time = f.Time
	_, _, err = k.commit(ctx, run, stored)
	return err
}

// write stores the content under a new key.
func (k *Repository) write(ctx context.Context, run, name string, size int64, body io.Reader) (File, error) {
	others, err := k.List(ctx, run)
	if err != nil {
		return File{}, err
	}
	limit, err := k.settings.remainingSize(others)
	if err != nil {
		return File{}, err
	}
	if size > limit {
		return File{}, k.settings.tooLarge(name, limit)
	}
	o, err := k.objects.Put(ctx, "artifacts/"+run+strings.ToLower(rand.Text()), size, false, func(w io.Writer) error {
		n, err := io.Copy(w, io.LimitReader(bodyReader{body}, limit+1))
		if err == nil && n > limit {
			err = k.settings.tooLarge(name, limit)
		}
		return err
	})
	if err != nil {
		return File{}, fmt.Errorf("store artifact %q: %w", name, err)
	}
	return File{Name: name, Object: o.Key, Size: o.Size, SHA256: o.SHA256, Time: k.now().UTC().Round(0)}, nil
}

// discardDuplicate deletes the content of f after another call has stored a file of
// that name.
func (k *Repository) discardDuplicate(ctx context.Context, run string, f File) (File, bool, error) {
	existing, _, err := store.Get[File](ctx, k.index, store.KindArtifact, keyOf(run, f.Name))
	if err != nil {
		return File{}, false, fmt.Errorf("look for artifact %q: %w", f.Name, err)
	}
	if err := k.objects.Delete(ctx, f.Object); err != nil {
		return File{}, false, fmt.Errorf("drop what was stored of artifact %q: %w", f.Name, err)
	}
	if existing.SHA256 != f.SHA256 {
		return File{}, false, &ContentConflictError{Name: f.Name}
	}
	return existing, true, nil
}

// checkSame checks that body is the content of a stored file.
func (k *Repository) checkSame(existing File, size int64, body io.Reader) (File, bool, error) {
	if size >= 0 && size != existing.Size {
		return File{}, false, &ContentConflictError{Name: existing.Name}
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(bodyReader{body}, existing.Size+1))
	if err != nil {
		return File{}, false, fmt.Errorf("compare artifact %q: %w", existing.Name, err)
	}
	if n != existing.Size || hex.EncodeToString(sum.Sum(nil)) != existing.SHA256 {
		return File{}, false, &ContentConflictError{Name: existing.Name}
	}
	return existing, true, nil
}

// List returns the files of a run, by name.
func (k *Repository) List(ctx context.Context, run string) ([]File, error) {
	var files []File
	for d, err := range store.All[File](ctx, k.index, store.KindArtifact, run+"!") {
		if err != nil {
			return nil, fmt.Errorf("list artifacts of run %s: %w", run, err)
		}
		files = append(files, d.Value)
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	return files, nil
}

// Open opens a file of a run for reading from an offset. The error is store.ErrNotFound
// for a missing file, and *OffsetError for an offset outside the file.
func (k *Repository) Open(ctx context.Context, run, name string, offset int64) (File, io.ReadCloser, error) {
	if err := CheckName(name); err != nil {
		return File{}, nil, err
	}
	f, _, err := store.Get[File](ctx, k.index, store.KindArtifact, keyOf(run, name))
	if err != nil {
		return File{}, nil, err
	}
	if offset < 0 || offset > f.Size {
		return File{}, nil, &OffsetError{Name: name, Offset: offset, Size: f.Size}
	}
	if k.objects == nil {
		return File{}, nil, errNoObjects
	}
	r, err := k.objects.OpenAt(ctx, f.Object, offset)
	return f, r, err
}
