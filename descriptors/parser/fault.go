package parser

import (
	"fmt"
	"strings"
)

// A Fault is one error in a descriptor or, as a warning, a probable mistake.
type Fault struct {
	File    string // the name that Parse was given
	Line    int    // from 1
	Column  int    // from 1, in characters
	Path    string // the key that it is about: data.sources[0].path; "" for the file
	Code    string // one of those that Explain knows; it never changes its meaning
	Message string // the error, in one line
	Remedy  string // how to mend it, in one line; "" where no line says it
	Warning bool   // the descriptor can be run as it is
}

// String is the fault on one line: file:line:col: path: message (remedy).
func (f Fault) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s:%d:%d: ", f.File, f.Line, f.Column)
	if f.Path != "" {
		s.WriteString(f.Path + ": ")
	}
	if f.Warning {
		s.WriteString("warning: ")
	}
	s.WriteString(f.Message)
	if f.Remedy != "" {
		s.WriteString(" (" + f.Remedy + ")")
	}
	return s.String()
}

// Faults are the faults of one descriptor in the order of their places.
type Faults []Fault

// Errors are the faults for which a descriptor is refused.
func (f Faults) Errors() Faults { return f.only(false) }

// Warnings are the faults with which a descriptor is run all the same.
func (f Faults) Warnings() Faults { return f.only(true) }

func (f Faults) only(warnings bool) Faults {
	var some Faults
	for _, fault := range f {
		if fault.Warning == warnings {
			some = append(some, fault)
		}
	}
	return some
}

// Err is nil where no fault is an error. Otherwise it is an *InvalidError with
// all of those that are.
func (f Faults) Err() error {
	if errs := f.Errors(); len(errs) > 0 {
		return &InvalidError{Faults: errs}
	}
	return nil
}

// An InvalidError says why a descriptor is refused.
type InvalidError struct {
	Faults Faults // at least one, none of them a warning
}

// Error has one line for each fault.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}
