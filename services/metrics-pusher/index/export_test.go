package index

// The rules that tests of this package check.
var (
	Lines   = linesOf
	Samples = samplesOf
)
