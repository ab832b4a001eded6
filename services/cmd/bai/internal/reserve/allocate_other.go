//go:build !linux

package reserve

import (
	"errors"
	"os"
)

// allocate is for Linux alone.
func allocate(*os.File, int64) error { return errors.ErrUnsupported }
