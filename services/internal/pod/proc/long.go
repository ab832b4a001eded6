package proc

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// maxString is how many bytes Linux takes of one argument or variable.
const maxString = 128<<10 - 1

// TooLong says which argument or variable is too long, where err says that some are;
// else it returns err.
func TooLong(err error, args, env []string) error {
	if !errors.Is(err, syscall.E2BIG) {
		return err
	}
	all := 0
	for i, a := range args {
		if all += len(a) + 1; len(a) > maxString {
			return fmt.Errorf("argument %d has %d bytes, and the kernel takes %d: put it into a file", i, len(a), maxString)
		}
	}
	for _, v := range env {
		if all += len(v) + 1; len(v) > maxString {
			name, _, _ := strings.Cut(v, "=")
			return fmt.Errorf("the variable %.100q has %d bytes with its name, and the kernel takes %d: put its value into a file", name,
				len(v), maxString)
		}
	}
	return fmt.Errorf(
		"arguments and variables have %d bytes in all, more than the kernel takes (a quarter of ulimit -s): put some into files", all)
}
