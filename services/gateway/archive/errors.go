package archive

import (
	"errors"
	"fmt"
	"io"
)

// FileError is a fault in a file of an import.
type FileError struct {
	File    string
	Line    int // from 1; 0 if the fault has no line
	Message string
}

// Error implements error.
func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
	}
	return fmt.Sprintf("%s: %s", e.File, e.Message)
}

// RunExistsError refuses an import because another run has its ID.
type RunExistsError struct{ Run, Message string }

// Error implements error.
func (e *RunExistsError) Error() string {
	return fmt.Sprintf("run %s is here already: %s", e.Run, e.Message)
}

// ImportInProgressError refuses an import while another import of the same run is in
// progress.
type ImportInProgressError struct{ Run string }

// Error implements error.
func (e *ImportInProgressError) Error() string {
	return fmt.Sprintf("run %s is being imported by somebody else", e.Run)
}

// PreconditionError refuses an import on this platform.
type PreconditionError struct{ Message string }

// Error implements error.
func (e *PreconditionError) Error() string { return e.Message }

// StorageFullError refuses an import because the platform has no room for another run.
type StorageFullError struct{ Reason string }

// Error implements error.
func (e *StorageFullError) Error() string { return e.Reason }

// ChangedError ends an export because the run has changed since its start.
type ChangedError struct{ Run string }

// Error implements error.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("run %s changed while it was exported: begin anew", e.Run)
}

// StreamError ends an import whose stream broke.
type StreamError struct{ Err error }

// Error implements error.
func (e *StreamError) Error() string { return fmt.Sprintf("read what is sent: %v", e.Err) }

// Unwrap implements errors.Unwrap.
func (e *StreamError) Unwrap() error { return e.Err }

func fault(file string, line int, format string, args ...any) error {
	return &FileError{File: file, Line: line, Message: fmt.Sprintf(format, args...)}
}

// streamError wraps an error of the stream; io.EOF becomes io.ErrUnexpectedEOF.
func streamError(err error) error {
	if errors.Is(err, io.EOF) {
		return &StreamError{Err: io.ErrUnexpectedEOF}
	}
	return &StreamError{Err: err}
}
