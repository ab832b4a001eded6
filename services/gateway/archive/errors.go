package archive

import (
	"errors"
	"fmt"
	"io"
)

// FileError says what is wrong with a file that is imported.
type FileError struct {
	File    string
	Line    int // from 1; 0 where the fault has no line
	Message string
}

// Error implements error.
func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
	}
	return fmt.Sprintf("%s: %s", e.File, e.Message)
}

// RunExistsError says that another run has the ID.
type RunExistsError struct{ Run, Message string }

// Error implements error.
func (e *RunExistsError) Error() string {
	return fmt.Sprintf("run %s is here already: %s", e.Run, e.Message)
}

// ImportInProgressError says that somebody else imports the same run.
type ImportInProgressError struct{ Run string }

// Error implements error.
func (e *ImportInProgressError) Error() string {
	return fmt.Sprintf("run %s is being imported by somebody else", e.Run)
}

// PreconditionError says what must be otherwise before a run can be imported.
type PreconditionError struct{ Message string }

// Error implements error.
func (e *PreconditionError) Error() string { return e.Message }

// StorageFullError says that the platform has no room for another run now.
type StorageFullError struct{ Reason string }

// Error implements error.
func (e *StorageFullError) Error() string { return e.Reason }

// ChangedError says that a run changed while it was exported.
type ChangedError struct{ Run string }

// Error implements error.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("run %s changed while it was exported: begin anew", e.Run)
}

// StreamError says that what is imported did not come to its end.
type StreamError struct{ Err error }

// Error implements error.
func (e *StreamError) Error() string { return fmt.Sprintf("read what is sent: %v", e.Err) }

// Unwrap implements errors.Unwrap.
func (e *StreamError) Unwrap() error { return e.Err }

func fault(file string, line int, format string, args ...any) error {
	return &FileError{File: file, Line: line, Message: fmt.Sprintf(format, args...)}
}

// streamError tells the end of what is sent from what went wrong with it.
func streamError(err error) error {
	if errors.Is(err, io.EOF) {
		return &StreamError{Err: io.ErrUnexpectedEOF}
	}
	return &StreamError{Err: err}
}
