//go:build !linux

package reserve

import (
	"errors"
	"os"
)

// allocate is supported on Linux only.
func allocate(*os.File, int64) error { return errors.ErrUnsupported }
