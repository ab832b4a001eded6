package catalog

import "fmt"

// RefError refuses a URI that names no descriptor.
type RefError struct {
	Message string
	Remedy  string
}

// Error implements error.
func (e *RefError) Error() string { return e.Message }

// MissingError refuses a request for a descriptor that is not stored.
type MissingError struct {
	Namespace string
	Ref       Ref
}

// Error implements error.
func (e *MissingError) Error() string {
	if e.Ref.Version == 0 {
		return fmt.Sprintf("descriptor %q of namespace %q does not exist", e.Ref.Name, e.Namespace)
	}
	return fmt.Sprintf("version %d of descriptor %q of namespace %q does not exist", e.Ref.Version, e.Ref.Name, e.Namespace)
}

// SourceError is the reason why a descriptor cannot be fetched.
type SourceError struct {
	Message string // names the source, without secrets
	User    bool   // the user must change something; otherwise a later try may succeed
}

// Error implements error.
func (e *SourceError) Error() string { return e.Message }
