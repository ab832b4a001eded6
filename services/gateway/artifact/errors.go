package artifact

import (
	"errors"
	"fmt"
	"io"
)

var errNoObjects = errors.New("this server has no object store")

// NameError says why a name is not one of a file.
type NameError struct{ Name, Reason string }

// Error implements error.
func (e *NameError) Error() string { return fmt.Sprintf("name %.100q %s", e.Name, e.Reason) }

// ContentConflictError says that another content is kept under a name.
type ContentConflictError struct{ Name string }

// Error implements error.
func (e *ContentConflictError) Error() string {
	return fmt.Sprintf("artifact %q is kept already, with another content: what is kept never changes", e.Name)
}

// LimitError says that something is more than is kept.
type LimitError struct{ Message string }

// Error implements error.
func (e *LimitError) Error() string { return e.Message }

// OffsetError says that a file has no such place.
type OffsetError struct {
	Name         string
	Offset, Size int64
}

// Error implements error.
func (e *OffsetError) Error() string {
	return fmt.Sprintf("offset %d: artifact %q has %d bytes", e.Offset, e.Name, e.Size)
}

// BodyError says that what was to be kept could not be read to its end.
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
