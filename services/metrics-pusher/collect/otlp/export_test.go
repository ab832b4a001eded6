package otlp

// The rules that tests of this package check.
var Samples = samplesOf
