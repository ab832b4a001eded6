package blob

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// schemeS3 is that of URLs of buckets that objects can be kept in.
const schemeS3 = "s3"

// What a bucket is written with: so many pieces at once, each in memory until it
// is there. An object has at most 10,000 pieces.
const (
	pieces     = 2
	smallest   = 8 << 20
	unknown    = 16 << 20 // of an object of unknown size, which may have 156 GiB then
	mostPieces = 9000
)

// piece returns how large the pieces of an object are; its size is -1 where it is
// not known.
func piece(size int64) int {
	if size < 0 {
		return unknown
	}
	return int(max(smallest, (size+mostPieces-1)/mostPieces))
}

// openCloud opens a store in a bucket.
func openCloud(ctx context.Context, s Settings, u *url.URL, clouds Clouds) (*Store, error) {
	if clouds == nil {
		return nil, fmt.Errorf("open object store %s: objects are kept in a folder only here", s.URL)
	}
	bucket, err := clouds.Hold(ctx, u.Scheme, u.Host)
	if err != nil {
		return nil, fmt.Errorf("open object store %s: %w", s.URL, err)
	}
	if prefix := strings.Trim(u.Path, "/"); prefix != "" {
		bucket = blob.PrefixedBucket(bucket, prefix+"/")
	}
	return &Store{bucket: bucket, podURL: s.PodURL, cloud: true}, nil
}

// Link returns a URL by which whoever is told it reads an object, and nothing
// else, for so long; "" where the store has no such thing.
func (s *Store) Link(ctx context.Context, key string, lasts time.Duration) (string, error) {
	if !s.cloud {
		return "", nil
	}
	if !valid(key) {
		return "", fmt.Errorf("link to object %q: not a key", key)
	}
	link, err := s.bucket.SignedURL(ctx, key, &blob.SignedURLOptions{Expiry: lasts, Method: http.MethodGet})
	if gcerrors.Code(err) == gcerrors.Unimplemented || errors.Is(err, errors.ErrUnsupported) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("link to object %s: %w", key, err)
	}
	return link, nil
}
