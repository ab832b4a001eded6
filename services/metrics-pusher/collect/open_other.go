//go:build !linux

package collect

import (
	"errors"
	"os"
)

// nonblock is nothing: pods run on Linux.
const nonblock = 0

func mkfifo(*os.File, string) error { return errors.ErrUnsupported }

func punch(*os.File, int64, int64) error { return errors.ErrUnsupported }

func (v *volume) free() (int64, error) { return 0, errors.ErrUnsupported }
