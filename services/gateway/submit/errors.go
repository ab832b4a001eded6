package submit

import (
	"fmt"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// InvalidError refuses a request that a user must change.
type InvalidError struct {
	Faults descriptors.Faults // in order of place; those of the request itself, which have none, first
}

// Error has a line for each fault.
func (e *InvalidError) Error() string {
	return (&descriptors.InvalidError{Faults: e.Faults}).Error()
}

// UnsupportedError refuses a request for a feature that this platform does not have.
type UnsupportedError struct {
	Feature string // in the plural: schedules
}

// Error implements error.
func (e *UnsupportedError) Error() string { return "this platform does not have " + e.Feature }

// ScheduleError is returned for a valid request that asks for a schedule, not for a
// run.
type ScheduleError struct {
	Descriptor *descriptors.Descriptor
	Text       []byte             // of the descriptor, with the values that were put into it
	Digest     string             // equal for requests that ask for the same
	Provenance *event.Provenance  // of the descriptor, without credentials
	Warnings   descriptors.Faults // of the descriptor
}

// Error implements error.
func (e *ScheduleError) Error() string {
	return fmt.Sprintf("this platform does not have schedules (info.scheduling = %q)", e.Descriptor.Info.Scheduling)
}

// NotUniqueError refuses a key or name that another run has.
type NotUniqueError struct {
	Field string // of the request: idempotency_key or name
	Value string
	Run   string // that it stands for
}

// Error implements error.
func (e *NotUniqueError) Error() string {
	if e.Field == "idempotency_key" {
		return fmt.Sprintf("idempotency key %q was used before, for another request: use another key, or send what run %s was made of", e.Value, e.Run)
	}
	return fmt.Sprintf("run %s has the %s %q: choose another, or leave it empty", e.Run, e.Field, e.Value)
}

// StorageFullError refuses a request because the platform has no room for another run.
type StorageFullError struct{ Reason string }

// Error implements error.
func (e *StorageFullError) Error() string { return e.Reason }

// UnavailableError ends a request that could not be carried through now. It may be
// sent again.
type UnavailableError struct {
	Run string // that may still be run, empty where none will
	Err error
}

// Error implements error.
func (e *UnavailableError) Error() string {
	if e.Run == "" {
		return fmt.Sprintf("nothing was accepted: %v", e.Err)
	}
	return fmt.Sprintf("run %s was not accepted yet, but may still be run: %v", e.Run, e.Err)
}

// Unwrap implements errors.Unwrap.
func (e *UnavailableError) Unwrap() error { return e.Err }
