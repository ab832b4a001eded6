package submit

import (
	"fmt"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// InvalidError refuses a request that the user must change.
type InvalidError struct {
	Faults parser.Faults // faults of the request itself first, then those of the descriptor in order of their place
}

// Error implements error. It has a line for each fault.
func (e *InvalidError) Error() string {
	return (&parser.InvalidError{Faults: e.Faults}).Error()
}

// UnsupportedError refuses a request for a feature that this platform does not have.
type UnsupportedError struct {
	Feature string // in the plural, as in schedules
}

// Error implements error.
func (e *UnsupportedError) Error() string { return "this platform does not have " + e.Feature }

// ScheduleError is the error for a valid request that asks for a schedule and not for a
// run.
type ScheduleError struct {
	Descriptor *descriptors.Descriptor
	Text       []byte            // text of the descriptor with the overrides applied
	Digest     string            // equal for requests that ask for the same schedule
	Provenance *event.Provenance // origin of the descriptor, without credentials
	Warnings   parser.Faults     // warnings about the descriptor
}

// Error implements error.
func (e *ScheduleError) Error() string {
	return fmt.Sprintf("this platform does not have schedules (info.scheduling = %q)", e.Descriptor.Info.Scheduling)
}

// SetError is the error for a valid request that asks for a set of runs and not for a run.
type SetError struct {
	Descriptor *descriptors.Descriptor // that of the first cell
	Text       []byte                  // text of the descriptor with the overrides applied, and its sweep
	Digest     string                  // equal for requests that ask for the same set
	Provenance *event.Provenance       // origin of the descriptor, without credentials
	Warnings   parser.Faults           // warnings about the descriptor
}

// Error implements error.
func (e *SetError) Error() string { return "this platform does not have sets (table sweep)" }

// NotUniqueError refuses a key or name that belongs to another run, or to a set.
type NotUniqueError struct {
	Field string // idempotency_key or name
	Value string
	Run   string // run that has the key or name
	Set   string // set that has the name; empty if a run has it
}

// Error implements error.
func (e *NotUniqueError) Error() string {
	if e.Field == "idempotency_key" {
		return fmt.Sprintf("idempotency key %q was used before, for another request: use another key, or send what run %s was made of",
			e.Value, e.Run)
	}
	if e.Set != "" {
		return fmt.Sprintf("set %s has the %s %q: choose another, or leave it empty", e.Set, e.Field, e.Value)
	}
	return fmt.Sprintf("run %s has the %s %q: choose another, or leave it empty", e.Run, e.Field, e.Value)
}

// ForgottenError refuses a request that was sent before, under the same key: the records of
// its run were removed.
type ForgottenError struct{ Run string }

// Error implements error.
func (e *ForgottenError) Error() string {
	return fmt.Sprintf("the idempotency key belongs to run %s, whose records were removed: use another key", e.Run)
}

// StorageFullError refuses a request because the platform has no room for another run.
type StorageFullError struct{ Reason string }

// Error implements error.
func (e *StorageFullError) Error() string { return e.Reason }

// withdrawnError refuses a run that its set has withdrawn since the request was made.
type withdrawnError struct{ Set, Key string }

// Error implements error.
func (e *withdrawnError) Error() string {
	return fmt.Sprintf("run %s of set %s was withdrawn by another process", e.Key, e.Set)
}

// UnavailableError ends a request that cannot be completed now. The user may send the
// request again.
type UnavailableError struct {
	Run string // run that may still be run; empty if none will be
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
