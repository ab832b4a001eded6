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
