// Package blob keeps objects in a store that a URL names. An object is whole
// from the moment it can be seen, and is never changed under its key.
package blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
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
	if s.Reserve < 0 {
		errs = append(errs, errors.New("objects.reserve: must not be negative"))
	}
	return errors.Join(errs...)
}

// BucketOpener opens buckets of clouds, to write to.
type BucketOpener interface {
	// OpenForWrite opens the bucket of a scheme and a name, and returns what writes to it.
	// It asks for nothing.
	OpenForWrite(ctx context.Context, scheme, name string, log *zap.Logger) (*blob.Bucket, Upload, error)
}

// Upload writes what r has to an object of a bucket, which is there once r has
// ended well. It does so in pieces, of which so many are on their way at once, and
// two more in memory. A request that is under way when ctx is done ends first, or
// after some seconds is given up. After an error there is neither an object nor a
// piece of one, unless the bucket could not be reached for so long: then the log
// says so, and the bucket has to forget them. It is an error if there is an object
// of that key.
type Upload = func(ctx context.Context, key string, r io.Reader, bytes, once int) error

// Store is an open object store. It may be used by several goroutines, and the
// place behind it by several processes.
type Store struct {
	bucket       *blob.Bucket
	disk         disk
	podURL       string
	bucketWriter *bucketWriter // nil where it is a folder
}

// Open opens a store in a folder, and removes what writers that died have left
// half written.
func Open(ctx context.Context, s Settings) (*Store, error) { return OpenIn(ctx, s, nil, nil) }

// OpenIn is Open, of a store in a folder or in a bucket of clouds, which must be
// there. What writers that died have left in a bucket is the bucket's to remove:
// nobody sees it. The log says where a writer that lives leaves something.
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

// Close gives back what the store holds. Nothing may be under way.
func (s *Store) Close() error { return s.bucket.Close() }

// PodURL returns the URL under which a pod finds the objects: an object lies at
// that URL, a slash, and its key.
func (s *Store) PodURL() string { return s.podURL }

// Put stores what fill writes as the object key, and says its size and sums;
// MD5 only if asked. Nobody sees the object before it is whole; after an error
// there is none. Size is how much there will be, -1 if that is not known. Where
// it would not fit, the error is syscall.ENOSPC.
//
// A key is "objects/" or "artifacts/" and lower-case letters and digits, and is
// used once. What lies below "artifacts/" is no data set: All leaves it out.
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
		_ = w.Close() // says that it was canceled, and removes what there is
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
	w, err := s.bucket.NewWriter(ctx, key, &blob.WriterOptions{ContentType: "application/octet-stream", BeforeWrite: lock, IfNotExist: true})
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

// Space says what there is room for, as far as that is known: of a bucket, and of
// a store that is reached by another scheme, nothing is.
func (s *Store) Space(context.Context) (store.Space, error) { return s.disk.space() }

// Delete removes an object. None of that key is no error.
func (s *Store) Delete(ctx context.Context, key string) error {
	err := wrap("delete", key, s.bucket.Delete(ctx, key))
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// Info is what a listing says about an object.
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

// Every key begins with one of these: what runs need, and what they leave.
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
