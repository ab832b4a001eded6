//go:build !unix

package main

import "math"

// maxFiles returns how many files this process may have open: there is no limit.
func maxFiles() (uint64, error) { return math.MaxUint64, nil }
