package transpile

// The rules that tests of this package check.
var Name = jobName
