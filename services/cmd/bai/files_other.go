//go:build !unix

package main

import (
	"errors"
	"math"
)

// maxFiles returns how many files this process may have open: there is no limit.
func maxFiles() (uint64, error) { return math.MaxUint64, nil }

// diskSpace is not known.
func diskSpace(string) (free, all int64, err error) { return 0, 0, errors.ErrUnsupported }
