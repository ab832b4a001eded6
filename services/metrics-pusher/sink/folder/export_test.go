package folder

// The rules that tests of this package check.
type Row = row
