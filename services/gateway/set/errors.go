package set

import (
	"fmt"

	"github.com/benchmark-ai/bai/services/gateway/submit"
)

// MissingError refuses a request about a set that does not exist.
type MissingError struct{ Ref, Owner string }

// Error implements error.
func (e *MissingError) Error() string {
	if submit.IsRunID(e.Ref) {
		return fmt.Sprintf("set %s does not exist", e.Ref)
	}
	return fmt.Sprintf("set %.100q of owner %.100q does not exist", e.Ref, e.Owner)
}

// StateError refuses a request that the state of a set does not allow.
type StateError struct{ Message string }

// Error implements error.
func (e *StateError) Error() string { return e.Message }

// TokenError refuses a page token that was not given for the cells of a set.
type TokenError struct{}

// Error implements error.
func (*TokenError) Error() string { return "not a page token of this list" }

// SizeError refuses a request for results of a cell that are too large for one response.
type SizeError struct{ Cell string }

// Error implements error.
func (e *SizeError) Error() string {
	return fmt.Sprintf("the results of cell %.200q are too large for a response", e.Cell)
}
