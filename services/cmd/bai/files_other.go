//go:build !unix

package main

import (
	"errors"
	"math"
)

// maxFiles returns how many files this process may have open: there is no limit.
func maxFiles() (uint64, error) { return math.MaxUint64, nil }

// space is not known.
func space(string) (free, all int64, err error) { return 0, 0, errors.ErrUnsupported }
