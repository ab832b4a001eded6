package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// schemeS3 is that of URLs of buckets that objects can be kept in.
const schemeS3 = "s3"

// Sizes of the pieces of an upload, each in memory until it is stored. S3 requires at
// least 5 MiB in each, and at most 10,000 of them:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html.
const (
	minPartSize     = 5 << 20
	unknownSizePart = 8 << 20 // of an object of unknown size, which may have 78 GiB then
	maxParts        = 9000
)

// uploadParts returns the size of an object's pieces, and how many are sent at once; the
// next is filled meanwhile. A size of -1 is unknown. Two of the smallest pieces hide the
// latency of each; of larger ones one is sent, as a second would save little time for its
// memory.
func uploadParts(size int64) (partSize, concurrency int) {
	partSize = int(max(minPartSize, (size+maxParts-1)/maxParts))
	if size < 0 {
		partSize = unknownSizePart
	}
	if partSize > minPartSize {
		return partSize, 1
	}
	return partSize, 2
}

// openCloud opens a store in a bucket.
func openCloud(ctx context.Context, s Settings, u *url.URL, opener BucketOpener, log *zap.Logger) (*Store, error) {
	if opener == nil {
		return nil, fmt.Errorf("open object store %s: objects are kept in a folder only here", s.URL)
	}
	bucket, write, err := opener.OpenForWrite(ctx, u.Scheme, u.Host, log)
	if err != nil {
		return nil, fmt.Errorf("open object store %s: %w", s.URL, err)
	}
	keyPrefix := strings.Trim(u.Path, "/")
	if keyPrefix != "" {
		keyPrefix += "/"
		bucket = blob.PrefixedBucket(bucket, keyPrefix)
	}
	return &Store{bucket: bucket, podURL: s.PodURL, bucketWriter: &bucketWriter{write: write, keyPrefix: keyPrefix}}, nil
}

// bucketWriter writes the objects of a store in a bucket.
type bucketWriter struct {
	write     Upload
	keyPrefix string // prefix of each key
}

// upload is an object on its way to a bucket.
type upload struct {
	to   *io.PipeWriter
	done chan error
	ctx  context.Context //nolint:containedctx // Close ends what was begun with it
}

// create begins an object, which is visible once it is closed with no error. Close
// returns an error if ctx is done before the last piece is sent.
func (c *bucketWriter) create(ctx context.Context, key string, size int64) *upload {
	from, to := io.Pipe()
	u := &upload{to: to, done: make(chan error, 1), ctx: ctx}
	partSize, concurrency := uploadParts(size)
	go func() {
		err := c.write(ctx, c.keyPrefix+key, from, partSize, concurrency)
		_ = from.CloseWithError(err) // never fails
		u.done <- err
	}()
	return u
}

// Write implements io.Writer.
func (u *upload) Write(p []byte) (int, error) { return u.to.Write(p) }

// Close implements io.Closer.
func (u *upload) Close() error {
	_ = u.to.CloseWithError(u.ctx.Err()) // io.EOF where that is nil; never fails
	return <-u.done
}

// Link returns a URL by which any client reads an object, and nothing else, for ttl; ""
// if the store has no such URLs.
func (s *Store) Link(ctx context.Context, key string, ttl time.Duration) (string, error) {
	if s.bucketWriter == nil {
		return "", nil
	}
	if !valid(key) {
		return "", fmt.Errorf("link to object %q: not a key", key)
	}
	link, err := s.bucket.SignedURL(ctx, key, &blob.SignedURLOptions{Expiry: ttl, Method: http.MethodGet})
	if gcerrors.Code(err) == gcerrors.Unimplemented || errors.Is(err, errors.ErrUnsupported) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("link to object %s: %w", key, err)
	}
	return link, nil
}
