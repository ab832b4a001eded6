package follow

// The rules that tests of this package check.
type Progress = progress
