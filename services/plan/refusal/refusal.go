// Package refusal has the error of a run that the platform cannot launch although its descriptor is valid.
package refusal

import (
	"fmt"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Error is the reason why a valid descriptor cannot be run on this platform.
type Error struct {
	Reason  event.Reason
	Message string // for the user
}

// Error implements error.
func (e *Error) Error() string { return string(e.Reason) + ": " + e.Message }

// Descriptor returns the refusal of a descriptor that asks for what this platform does not have or allow.
func Descriptor(format string, args ...any) *Error {
	return &Error{Reason: event.InvalidDescriptor, Message: fmt.Sprintf(format, args...)}
}
