//go:build !unix

package main

import "math"

// maxFiles returns the maximum number of open files of this process. There is no limit.
func maxFiles() (uint64, error) { return math.MaxUint64, nil }
