package store

import (
	"fmt"
	"time"
)

// BucketObject is an object of a bucket that is not ours, as its owner tells of it.
type BucketObject struct {
	Key        string
	Size       int64
	Modified   time.Time
	InvalidKey bool   // its key is not one by which it can be asked for
	ContentTag string // that of this content, opaque; of S3 its ETag, whether of one part or of several; empty where it has none
}

// RetryableStatus reports whether a server of HTTP that answers so may answer otherwise
// later.
func RetryableStatus(status int) bool {
	const timeout, early, many, server = 408, 425, 429, 500
	return status == timeout || status == early || status == many || status >= server
}

// UnavailableError says that a server cannot answer now, and when it may be asked
// again. It is one of a bucket or a repository that is not ours.
type UnavailableError struct {
	Status     int    // that is Busy
	RetryAfter string // its Retry-After, as it wrote it; empty where it did not
	Err        error  // by which it was told
}

// Error implements error.
func (e *UnavailableError) Error() string { return fmt.Sprintf("status %d: %v", e.Status, e.Err) }

// Unwrap returns the error by which it was told.
func (e *UnavailableError) Unwrap() error { return e.Err }
