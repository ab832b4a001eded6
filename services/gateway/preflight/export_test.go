package preflight

// The rules that tests of this package check.
var Decide = decide
