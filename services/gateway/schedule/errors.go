package schedule

import (
	"fmt"

	"github.com/benchmark-ai/bai/services/gateway/submit"
)

// MissingError refuses a request about a schedule that does not exist.
type MissingError struct{ Ref, Owner string }

// Error implements error.
func (e *MissingError) Error() string {
	if submit.IsRunID(e.Ref) {
		return fmt.Sprintf("schedule %s does not exist", e.Ref)
	}
	return fmt.Sprintf("schedule %.100q of owner %.100q does not exist", e.Ref, e.Owner)
}

// ActiveRunError refuses to fire a schedule while one of its runs or sets is active.
type ActiveRunError struct{ Execution Execution }

// Error implements error.
func (e *ActiveRunError) Error() string {
	return fmt.Sprintf("%s of the schedule goes on, and schedule.concurrency is forbid: wait for its end, or cancel it", e.Execution)
}

// UnrunnableError refuses to fire a schedule whose descriptor was accepted once and is
// invalid by the current rules.
type UnrunnableError struct{ Err *submit.InvalidError }

// Error implements error.
func (e *UnrunnableError) Error() string {
	return "the descriptor of the schedule cannot be run any more: " + e.Err.Error()
}

// Unwrap implements errors.Unwrap.
func (e *UnrunnableError) Unwrap() error { return e.Err }

// SpanError refuses a backfill because of its span of time.
type SpanError struct{ Message, Remedy string }

// Error implements error.
func (e *SpanError) Error() string { return e.Message }
