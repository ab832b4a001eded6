package puller

// The rules that tests of this package check.
type Error = pullError
