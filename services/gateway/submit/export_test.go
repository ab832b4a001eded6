package submit

// The rules that tests of this package check.
var (
	Decide = decide
	UseOf  = useOf
)

// WithdrawnError is the error of a run that its set has withdrawn.
type WithdrawnError = withdrawnError
