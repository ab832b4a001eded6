package artifact

import (
	"errors"
	"fmt"
	"io"
)

var errNoObjects = errors.New("this server has no object store")

// NameError refuses the name of a file.
type NameError struct{ Name, Reason string }

// Error implements error.
func (e *NameError) Error() string { return fmt.Sprintf("name %.100q %s", e.Name, e.Reason) }

// ContentConflictError refuses a file because its name has other content.
type ContentConflictError struct{ Name string }

// Error implements error.
func (e *ContentConflictError) Error() string {
	return fmt.Sprintf("artifact %q is kept already, with another content: what is kept never changes", e.Name)
}

// LimitError refuses a file that is too large.
type LimitError struct{ Message string }

// Error implements error.
func (e *LimitError) Error() string { return e.Message }

// OffsetError refuses an offset behind the end of a file.
type OffsetError struct {
	Name         string
	Offset, Size int64
}

// Error implements error.
func (e *OffsetError) Error() string {
	return fmt.Sprintf("offset %d: artifact %q has %d bytes", e.Offset, e.Name, e.Size)
}

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
