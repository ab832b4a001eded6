// Package bucket reads buckets of S3, Google and Azure, and of compatible servers. It
// writes nothing itself; for writers it opens buckets of S3.
//
// It links the clouds' own libraries: only programs that fetch import it.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"go.uber.org/zap"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings say how buckets are reached, by scheme of their URLs. Their zero
// value is the cloud's own address, and the credentials that its tools find in
// the environment.
type Settings struct {
	S3     S3     `toml:"s3"`
	GS     GS     `toml:"gs"`
	Azblob Azblob `toml:"azblob"`
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	if (s.S3.AccessKeyFile == "") != (s.S3.SecretKeyFile == "") {
		errs = append(errs, errors.New("buckets.s3: access_key_file and secret_key_file belong together"))
	}
	for name, url := range map[string]string{"s3": s.S3.Endpoint, "gs": s.GS.Endpoint, "azblob": s.Azblob.Endpoint} {
		if url != "" && !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
			errs = append(errs, fmt.Errorf("buckets.%s.endpoint: %q is not a URL: https://host:port is one", name, url))
		}
	}
	return errors.Join(errs...)
}

// Opener opens buckets.
type Opener struct{ settings Settings }

// New returns an Opener. It reads no secret yet.
func New(s Settings) (*Opener, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return &Opener{settings: s}, nil
}

// Open opens the bucket of that name, and reads it by client. It sends no request: a
// missing bucket is an error of the first read.
func (o *Opener) Open(ctx context.Context, scheme, name string, client *http.Client) (*Bucket, error) {
	var (
		b   *Bucket
		err error
	)
	switch scheme {
	case "s3":
		b, err = o.settings.S3.open(ctx, name, client)
	case "gs":
		b, err = o.settings.GS.open(ctx, name, client)
	case "azblob":
		b, err = o.settings.Azblob.open(ctx, name, client)
	default:
		err = fmt.Errorf("there are no buckets of that scheme: %w", store.ErrRefused)
	}
	if err != nil {
		return nil, fmt.Errorf("open bucket %s://%s: %w", scheme, name, err)
	}
	return b, nil
}

// OpenForWrite opens a bucket of S3, and returns the function that writes to it, over
// separate connections with retries. They connect only to the addresses of the settings,
// never to a user's. A server that takes a request and does not answer, or stops amid an
// answer, is an error. It logs the uploads whose parts it could not remove.
func (o *Opener) OpenForWrite(ctx context.Context, scheme, name string,
	log *zap.Logger,
) (*blob.Bucket, func(ctx context.Context, key string, r io.Reader, bytes, once int) error, error) {
	if scheme != "s3" {
		return nil, nil, fmt.Errorf("open bucket %s://%s: objects are kept in buckets of S3 only: %w", scheme, name, store.ErrRefused)
	}
	api, err := o.settings.S3.client(ctx, func(*s3.Options) {})
	if err != nil {
		return nil, nil, fmt.Errorf("open bucket %s://%s: %w", scheme, name, err)
	}
	b, err := s3blob.OpenBucket(ctx, s3.New(api.Options(), limitSilence(maxSilence)), name, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("open bucket %s://%s: %w", scheme, name, err)
	}
	return b, uploader{api: api, bucket: name, log: log}.upload, nil
}

// Bucket is an open bucket. It may be used by several goroutines.
//
// Its errors are store.ErrNotFound for a missing bucket or object; store.ErrRefused for
// refused credentials; store.ErrConflict for an object that has changed since it was
// listed; *store.BusyError for a server that asks to retry later. Any other error may be
// temporary.
type Bucket struct {
	bucket       *blob.Bucket
	keyAndTag    func(as func(any) bool) (key, tag string) // the cloud's own key and tag of a listed object
	escapedChars string                                    // characters that the cloud's library puts something else for in keys
	setIfMatch   func(as func(any) bool, tag string)       // makes a read one of that tag only
	errorInfo    func(err error) errorInfo
}

// errorInfo is a server's answer.
type errorInfo struct {
	status     int    // 0 where it did not
	reason     string // in a word of its own
	retryAfter string // Retry-After
}

// control are characters that no key should have.
const control = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f"

// Close releases the bucket's resources.
func (b *Bucket) Close() error { return b.bucket.Close() }

// Stat describes one object.
func (b *Bucket) Stat(ctx context.Context, key string) (item store.BucketObject, err error) {
	defer recoverError(&err)
	a, err := b.bucket.Attributes(ctx, key)
	if err != nil {
		return store.BucketObject{}, b.explain(err)
	}
	return store.BucketObject{Key: key, Size: a.Size, Modified: a.ModTime.UTC(), ContentTag: unquoteTag(a.ETag)}, nil
}

// Read opens an object from one byte to before another.
func (b *Bucket) Read(ctx context.Context, item store.BucketObject, from, to int64) (content io.ReadCloser, err error) {
	defer recoverError(&err)
	opts := &blob.ReaderOptions{BeforeRead: func(as func(any) bool) error {
		if item.ContentTag != "" && b.setIfMatch != nil {
			b.setIfMatch(as, item.ContentTag)
		}
		return nil
	}}
	r, err := b.bucket.NewRangeReader(ctx, item.Key, from, to-from, opts)
	if err != nil {
		return nil, b.explain(err)
	}
	if r.Size() != item.Size || r.ModTime().Unix() != item.Modified.Unix() {
		return nil, errors.Join(store.ErrConflict, r.Close())
	}
	return &reader{Reader: r, bucket: b}, nil
}

// reader explains the errors of a download.
type reader struct {
	*blob.Reader

	bucket *Bucket
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.bucket.explain(err)
	}
	return n, err
}

// List describes all objects whose keys begin with prefix, in the order of the keys. It
// ends after an error.
func (b *Bucket) List(ctx context.Context, prefix string) iter.Seq2[store.BucketObject, error] {
	return func(yield func(store.BucketObject, error) bool) {
		for it := b.bucket.List(&blob.ListOptions{Prefix: prefix}); ; {
			o, err := next(ctx, it)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(store.BucketObject{}, b.explain(err))
				return
			}
			item := store.BucketObject{Key: o.Key, Size: o.Size, Modified: o.ModTime.UTC()}
			if b.keyAndTag != nil {
				key, tag := b.keyAndTag(o.As)
				item.ContentTag, item.InvalidKey = unquoteTag(tag), b.isUnsafeKey(key, o.Key)
			}
			if !yield(item, nil) {
				return
			}
		}
	}
}

// isUnsafeKey reports whether an object cannot be requested by its listed name: the
// cloud's library rewrites some characters of a key, or takes them for its own escapes.
func (b *Bucket) isUnsafeKey(key, listed string) bool {
	return key != listed || strings.ContainsAny(key, b.escapedChars) || strings.Contains(key, "../")
}

func next(ctx context.Context, it *blob.ListIterator) (o *blob.ListObject, err error) {
	defer recoverError(&err)
	return it.Next(ctx)
}

// recoverError turns a panic of a cloud's library into an error: some libraries expect
// fields that compatible servers leave out.
func recoverError(err *error) {
	if why := recover(); why != nil {
		*err = fmt.Errorf("the answer is not one that its protocol has: %v", why)
	}
}

// explain converts an error to one that callers can distinguish.
func (b *Bucket) explain(err error) error {
	t := b.errorInfo(err)
	sentinel := map[gcerrors.ErrorCode]error{
		gcerrors.NotFound: store.ErrNotFound, gcerrors.PermissionDenied: store.ErrRefused, gcerrors.FailedPrecondition: store.ErrConflict,
	}[gcerrors.Code(err)]
	switch t.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		sentinel = store.ErrRefused
	case http.StatusNotFound:
		sentinel = store.ErrNotFound
	case http.StatusPreconditionFailed:
		sentinel = store.ErrConflict
	}
	switch {
	case sentinel == nil && store.RetryableStatus(t.status):
		return &store.UnavailableError{Status: t.status, RetryAfter: t.retryAfter, Err: err}
	case sentinel == nil:
		return err
	case t.reason == "":
		return sentinel
	}
	return fmt.Errorf("%s: %w", t.reason, sentinel)
}

// unquoteTag is a tag without its quotes, which some listings leave out.
func unquoteTag(tag string) string { return strings.Trim(tag, `"`) }

// secret reads a secret from its file.
func secret(file string) (string, error) {
	b, err := os.ReadFile(file)
	if bad := (*os.PathError)(nil); errors.As(err, &bad) {
		err = bad.Err // users need not know where
	}
	if err != nil {
		return "", fmt.Errorf("the platform's credentials cannot be read: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}
