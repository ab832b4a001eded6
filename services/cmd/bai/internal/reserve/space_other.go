//go:build !unix

package reserve

import "errors"

// diskSpace is not supported on this system.
func diskSpace(string) (free, all int64, err error) { return 0, 0, errors.ErrUnsupported }
