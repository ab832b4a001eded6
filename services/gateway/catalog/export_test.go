package catalog

// The rules that tests of this package check.
var ParseRef = parseRef
