//go:build !linux

package volume

import (
	"errors"
	"os"
)

// Nonblock is no flag: pods run on Linux.
const Nonblock = 0

func mkfifo(*os.File, string) error { return errors.ErrUnsupported }

// PunchHole is not supported.
func PunchHole(*os.File, int64, int64) error { return errors.ErrUnsupported }

// Free is not supported.
func (v *Volume) Free() (int64, error) { return 0, errors.ErrUnsupported }
