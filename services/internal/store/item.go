package store

import (
	"fmt"
	"time"
)

// Item is an object of a bucket that is not ours, as its owner tells of it.
type Item struct {
	Key      string
	Size     int64
	Modified time.Time
	Odd      bool   // its key is not one by which it can be asked for
	Tag      string // that of this content, opaque; of S3 its ETag, whether of one part or of several; empty where it has none
}

// Busy reports whether a server of HTTP that answers so may answer otherwise
// later.
func Busy(status int) bool {
	const timeout, early, many, server = 408, 425, 429, 500
	return status == timeout || status == early || status == many || status >= server
}

// BusyError says that a server cannot answer now, and when it may be asked
// again. It is one of a bucket or a repository that is not ours.
type BusyError struct {
	Status int    // that is Busy
	After  string // its Retry-After, as it wrote it; empty where it did not
	Err    error  // by which it was told
}

// Error implements error.
func (e *BusyError) Error() string { return fmt.Sprintf("status %d: %v", e.Status, e.Err) }

// Unwrap returns the error by which it was told.
func (e *BusyError) Unwrap() error { return e.Err }
