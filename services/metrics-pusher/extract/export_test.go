package extract

// The rules that tests of this package check.
var (
	Convert = convert
	Number  = parseNumber
)
