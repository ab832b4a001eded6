package bundle

import (
	"errors"
	"fmt"
	"io"
)

var errNoObjects = errors.New("this server has no object store")

// DigestError says why a digest is not that of what was sent.
type DigestError struct{ Message string }

// Error implements error.
func (e *DigestError) Error() string { return e.Message }

// LimitError says that code is more than is kept.
type LimitError struct{ Message string }

// Error implements error.
func (e *LimitError) Error() string { return e.Message }

// BodyError says that code could not be read to its end.
type BodyError struct{ Err error }

// Error implements error.
func (e *BodyError) Error() string { return fmt.Sprintf("read what is sent: %v", e.Err) }

// Unwrap implements errors.Unwrap.
func (e *BodyError) Unwrap() error { return e.Err }

// bodyReader tells the errors of what is read from those of what is written.
type bodyReader struct{ from io.Reader }

// Read implements io.Reader.
func (r bodyReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &BodyError{Err: err}
	}
	return n, err
}
