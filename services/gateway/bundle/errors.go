package bundle

import (
	"errors"
	"fmt"
	"io"
)

var errNoObjects = errors.New("this server has no object store")

// DigestError refuses code whose digest differs from the announced one.
type DigestError struct{ Message string }

// Error implements error.
func (e *DigestError) Error() string { return e.Message }

// LimitError refuses code that is too large.
type LimitError struct{ Message string }

// Error implements error.
func (e *LimitError) Error() string { return e.Message }

// BodyError ends an upload that could not be read to its end.
type BodyError struct{ Err error }

// Error implements error.
func (e *BodyError) Error() string { return fmt.Sprintf("read what is sent: %v", e.Err) }

// Unwrap implements errors.Unwrap.
func (e *BodyError) Unwrap() error { return e.Err }

// bodyReader wraps the errors of the reader as *BodyError.
type bodyReader struct{ from io.Reader }

// Read implements io.Reader.
func (r bodyReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &BodyError{Err: err}
	}
	return n, err
}
