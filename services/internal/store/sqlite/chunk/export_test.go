package chunk

// The rules that tests of this package check.
var (
	Ordered = ordered
	Compare = compare
)
