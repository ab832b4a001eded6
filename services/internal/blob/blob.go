// Package blob stores objects under a URL. An object is complete as soon as it is
// visible, and never changes under its key.
package blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.uber.org/zap"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // the driver of file URLs
	"gocloud.dev/gcerrors"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings say where the objects lie.
type Settings struct {
	URL     string `toml:"url"`     // file:///an/absolute/folder, made if it is not there; or s3://bucket/and/a/prefix
	PodURL  string `toml:"pod_url"` // by which pods reach the same store, file, http or https; empty means URL
	Reserve int64  `toml:"reserve"` // bytes of the disk that are left free; zero means 256 MiB
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	if _, err := parse(s.URL); err != nil {
		errs = append(errs, fmt.Errorf("objects.url: %w", err))
	}
	if u, err := url.Parse(s.PodURL); s.PodURL != "" && (err != nil || !slices.Contains([]string{"file", "http", "https"}, u.Scheme)) {
		errs = append(errs, fmt.Errorf("objects.pod_url: %q is no URL that pods read: use file, http or https", s.PodURL))
	}
	if s.Reserve < 0 {
		errs = append(errs, errors.New("objects.reserve: must not be negative"))
	}
	return errors.Join(errs...)
}

// BucketOpener opens buckets of clouds, to write to.
type BucketOpener interface {
	// OpenForWrite opens the bucket of a scheme and a name, and returns the function that
	// writes to it. It sends no request.
	OpenForWrite(ctx context.Context, scheme, name string, log *zap.Logger) (*blob.Bucket, Upload, error)
}

// Upload writes r's bytes to an object of a bucket. The object is visible once r has
// ended without an error. Upload sends pieces, several at once, and holds two more in
// memory. When ctx is done, a request under way may end for some seconds before it is
// given up. After an error neither the object nor a piece of it exists, unless the bucket
// was unreachable for too long: then the log names the upload, and the bucket's own rules
// must remove it. An existing object of that key is an error.
type Upload = func(ctx context.Context, key string, r io.Reader, bytes, once int) error

// Store is an open object store. It may be used by several goroutines, and the
// place behind it by several processes.
type Store struct {
	bucket       *blob.Bucket
	disk         disk
	podURL       string
	bucketWriter *bucketWriter // nil where it is a folder
}

// Open opens a store in a folder, and removes the partial objects of dead writers.
func Open(ctx context.Context, s Settings) (*Store, error) { return OpenIn(ctx, s, nil, nil) }

// OpenIn is Open for a store in a folder or in a cloud's bucket, which must exist. The
// partial uploads of dead writers in a bucket are invisible; the bucket's own rules
// remove them. The log names the uploads that a living writer could not remove.
func OpenIn(ctx context.Context, s Settings, opener BucketOpener, log *zap.Logger) (*Store, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	u, err := parse(s.URL)
	if err != nil {
		return nil, err
	}
	if u.Scheme == schemeS3 {
		return openCloud(ctx, s, u, opener, log)
	}
	d := disk{reserve: cmp.Or(s.Reserve, 256<<20)}
	if u.Scheme == "file" {
		d.dir = u.Path
		u.RawQuery = url.Values{"create_dir": {"1"}, "dir_file_mode": {"0755"}, "no_tmp_dir": {"1"}, "metadata": {"skip"}}.Encode()
	}
	bucket, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		return nil, fmt.Errorf("open object store %s: %w", s.URL, err)
	}
	if err := d.clean(); err != nil {
		return nil, errors.Join(fmt.Errorf("clean object store %s: %w", s.URL, err), bucket.Close())
	}
	return &Store{bucket: bucket, disk: d, podURL: cmp.Or(s.PodURL, s.URL)}, nil
}

// Close releases the store's resources. No operation may be under way.
func (s *Store) Close() error { return s.bucket.Close() }

// PodURL returns the URL under which a pod finds the objects: an object lies at
// that URL, a slash, and its key.
func (s *Store) PodURL() string { return s.podURL }

// Put stores the bytes that fill writes as the object key, and returns its size and
// digests; MD5 only on request. The object is invisible until it is complete; after an
// error it does not exist. Size is the expected size, -1 if it is unknown. If the object
// does not fit, the error is syscall.ENOSPC.
//
// A key is "objects/" or "artifacts/" and lower-case letters and digits, and is used
// once. Objects below "artifacts/" are not data sets: All leaves them out.
func (s *Store) Put(ctx context.Context, key string, size int64, withMD5 bool, fill func(w io.Writer) error) (store.Object, error) {
	if err := s.disk.room(max(size, 0)); err != nil {
		return store.Object{}, fmt.Errorf("write object %s: %w", key, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := s.create(ctx, key, size)
	if err != nil {
		return store.Object{}, err
	}
	sums := newHashingWriter(s.disk.guard(w), withMD5)
	err = fill(sums)
	o := sums.object()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		_ = w.Close() // returns the cancel error, and removes the partial object
		return store.Object{}, err
	}
	if err := w.Close(); err != nil {
		return store.Object{}, fmt.Errorf("write object %s: %w", key, err)
	}
	o.Key = key
	return o, nil
}

func (s *Store) create(ctx context.Context, key string, size int64) (io.WriteCloser, error) {
	if !valid(key) {
		return nil, fmt.Errorf("write object %q: not a key", key)
	}
	if s.bucketWriter != nil {
		return s.bucketWriter.create(ctx, key, size), nil
	}
	w, err := s.bucket.NewWriter(ctx, key, &blob.WriterOptions{
		ContentType: "application/octet-stream", BeforeWrite: lock,
		IfNotExist: true,
	})
	if err != nil {
		return nil, fmt.Errorf("write object %s: %w", key, err)
	}
	return w, nil
}

// Open opens an object for reading, or says store.ErrNotFound.
func (s *Store) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	r, err := s.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return nil, wrap("read", key, err)
	}
	return r, nil
}

// OpenAt opens an object for reading from an offset on, or says
// store.ErrNotFound. At the offset of its end there is nothing to read.
func (s *Store) OpenAt(ctx context.Context, key string, offset int64) (io.ReadCloser, error) {
	r, err := s.bucket.NewRangeReader(ctx, key, offset, -1, nil)
	if err != nil {
		return nil, wrap("read", key, err)
	}
	return r, nil
}

// Size returns the size of an object, or store.ErrNotFound.
func (s *Store) Size(ctx context.Context, key string) (int64, error) {
	a, err := s.bucket.Attributes(ctx, key)
	if err != nil {
		return 0, wrap("look at", key, err)
	}
	return a.Size, nil
}

// Space returns the free space of the store's disk. It is zero where it is unknown: for a
// bucket, and for a store of another scheme.
func (s *Store) Space(context.Context) (store.Space, error) { return s.disk.space() }

// Delete removes an object. None of that key is no error.
func (s *Store) Delete(ctx context.Context, key string) error {
	err := wrap("delete", key, s.bucket.Delete(ctx, key))
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// Info describes an object in a listing.
type Info struct {
	Key      string
	Size     int64
	Modified time.Time
}

// All returns every object, in the order of the keys. It ends after an error.
func (s *Store) All(ctx context.Context) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for it := s.bucket.List(&blob.ListOptions{Prefix: prefix}); ; {
			o, err := it.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Info{}, fmt.Errorf("list objects: %w", err))
				return
			}
			if valid(o.Key) && !yield(Info{Key: o.Key, Size: o.Size, Modified: o.ModTime}, nil) {
				return
			}
		}
	}
}

// Items is All, in the words of the store.
func (s *Store) Items(ctx context.Context) iter.Seq2[store.BucketObject, error] {
	return func(yield func(store.BucketObject, error) bool) {
		for o, err := range s.All(ctx) {
			if !yield(store.BucketObject{Key: o.Key, Size: o.Size, Modified: o.Modified}, err) {
				return
			}
		}
	}
}

// Every key begins with one of these: inputs of runs, and their results.
const (
	prefix    = "objects/"
	artifacts = "artifacts/"
)

// valid reports whether key can be that of an object, and not that of one that
// is being written.
func valid(key string) bool {
	name, ok := strings.CutPrefix(key, prefix)
	if !ok {
		name, ok = strings.CutPrefix(key, artifacts)
	}
	return ok && name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// FolderURL returns the URL of the store in a folder, whose path is absolute and
// may hold every byte that a path can hold.
func FolderURL(dir string) string { return (&url.URL{Scheme: "file", Path: dir}).String() }

func parse(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is not a URL", raw)
	case u.Scheme == "":
		return nil, fmt.Errorf("%q is not a URL: file:///folder is one", raw)
	case u.Scheme == schemeS3 && (u.Host == "" || u.RawQuery != "" || u.User != nil):
		return nil, fmt.Errorf("%q does not name a bucket and nothing else: s3://bucket/prefix does", u.Redacted())
	case u.Scheme == schemeS3 && (strings.Contains(u.Path+"/", "../") || strings.ContainsFunc(u.Path, unicode.IsControl)):
		return nil, fmt.Errorf("%q has a prefix that not every bucket keeps as it is: s3://bucket/prefix", u.Redacted())
	case u.Scheme == "file" && (u.Host != "" || !strings.HasPrefix(u.Path, "/")):
		return nil, fmt.Errorf("%q does not name an absolute folder: file:///folder does", raw)
	}
	return u, nil
}

func wrap(verb, key string, err error) error {
	if err == nil {
		return nil
	}
	if gcerrors.Code(err) == gcerrors.NotFound {
		return fmt.Errorf("%s object %s: %w", verb, key, store.ErrNotFound)
	}
	return fmt.Errorf("%s object %s: %w", verb, key, err)
}
