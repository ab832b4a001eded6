package objects

import (
	"errors"
	"fmt"
	"syscall"
)

// readable returns an error without addresses and names, which the texts of drivers have.
func readable(err error) error {
	var errno syscall.Errno
	switch {
	case err == nil:
		return nil
	case errors.As(err, &errno):
		return fmt.Errorf("the object cannot be written: %s", errno.Error())
	}
	return errors.New("the object cannot be written")
}
