package extract

// Number is a rule that tests of this package check.
var Number = parseNumber
