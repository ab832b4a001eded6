// Package simtest is for tests that simulate.
package simtest

import (
	"os"
	"strconv"
	"testing"
)

// Count returns how many simulations a test makes: usual, or as many as the variable BAI_SIMULATIONS says. A variable that is no number
// fails the test.
func Count(tb testing.TB, usual int) int {
	tb.Helper()
	text := os.Getenv("BAI_SIMULATIONS")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		tb.Fatalf("BAI_SIMULATIONS is %q: want a number of simulations", text)
	}
	return n
}
