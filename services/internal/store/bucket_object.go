package store

import (
	"errors"
	"fmt"
	"time"
)

// BucketObject is an object of a user's bucket, as the bucket's server lists it.
type BucketObject struct {
	Key        string
	Size       int64
	Modified   time.Time
	InvalidKey bool   // the object cannot be requested by its key
	ContentTag string // opaque tag of the content; for S3 the ETag, of one part or several; empty if there is none
}

// ErrTooLarge means that a user's repository has more than the platform can read, now or later.
var ErrTooLarge = errors.New("too large")

// RetryableStatus reports whether a server of HTTP that answers so may answer otherwise
// later.
func RetryableStatus(status int) bool {
	const timeout, early, many, server = 408, 425, 429, 500
	return status == timeout || status == early || status == many || status >= server
}

// UnavailableError means that the server of a user's bucket or repository cannot answer now, and when to retry.
type UnavailableError struct {
	Status     int    // HTTP status of the answer
	RetryAfter string // the header Retry-After, unchanged; empty if there was none
	Err        error  // the original error
}

// Error implements error.
func (e *UnavailableError) Error() string { return fmt.Sprintf("status %d: %v", e.Status, e.Err) }

// Unwrap returns the original error.
func (e *UnavailableError) Unwrap() error { return e.Err }
