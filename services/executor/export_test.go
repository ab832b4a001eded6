package executor

// The rules that tests of this package check.
var (
	Decide         = decide
	DecideDeferred = decideDeferred
)

type Decision = decision
