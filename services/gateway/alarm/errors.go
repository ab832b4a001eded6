package alarm

import "fmt"

// FieldError refuses a field of a request.
type FieldError struct {
	Field   string
	Message string
	Remedy  string
}

// Error implements error.
func (e *FieldError) Error() string { return fmt.Sprintf("%s %s: %s", e.Field, e.Message, e.Remedy) }

// MissingError refuses a request about an incident or a mute that does not exist.
type MissingError struct{ Message string }

// Error implements error.
func (e *MissingError) Error() string { return e.Message }

// StateError refuses what cannot be done now.
type StateError struct{ Message string }

// Error implements error.
func (e *StateError) Error() string { return e.Message }
