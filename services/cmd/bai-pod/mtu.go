//go:build linux

package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/benchmark-ai/bai/services/internal/pod/link"
)

// setMTU sets the MTU of the pod's link to its network.
func setMTU(args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("%w: mtu wants a size", errUsage)
	}
	size, err := strconv.ParseUint(args[0], 10, 16)
	if err != nil {
		return fmt.Errorf("%w: %q is not the size of a packet", errUsage, args[0])
	}
	name, before, err := link.SetMTU(int(size))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "the MTU of %s is %d (it was %d)\n", name, size, before)
	return err
}
