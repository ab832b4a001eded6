package analysis

import "fmt"

// OperandError refuses a field of a request.
type OperandError struct {
	Field   string
	Message string
	Remedy  string
}

// Error implements error.
func (e *OperandError) Error() string { return fmt.Sprintf("%s %s: %s", e.Field, e.Message, e.Remedy) }

// MissingError refuses a request for runs or a baseline that do not exist.
type MissingError struct{ Message string }

// Error implements error.
func (e *MissingError) Error() string { return e.Message }

// StateError refuses to compare what cannot be compared.
type StateError struct{ Message string }

// Error implements error.
func (e *StateError) Error() string { return e.Message }
