package submit

// The rules that tests of this package check.
var (
	Decide = decide
	UseOf  = useOf
)
