package control

// The rules that tests of this package check.
var NewWake = newWake

type Wake = wake
