package shim

// The rules that tests of this package check.
var Decide = decide

// ReceiveRequest is how a bridge reads one.
var ReceiveRequest = receiveRequest

type Actions = actionSet
