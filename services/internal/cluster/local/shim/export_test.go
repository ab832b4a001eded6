package shim

// The rules that tests of this package check.
var Decide = decide

type Actions = actionSet
