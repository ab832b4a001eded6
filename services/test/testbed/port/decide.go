package port

import "fmt"

// Ports that may be reserved. Many servers have default ports below the first.
const (
	first = 10000
	last  = 65535
	few   = 1000 // fewer are not enough for the suites of one machine
)

// candidates returns the ports that may be reserved: those outside of the range
// that outgoing connections have, as the kernel prints it, or all where that leaves
// few, or where it is not known.
func candidates(outgoing string) []int {
	var low, high int
	if n, _ := fmt.Sscan(outgoing, &low, &high); n < 2 {
		low, high = 0, 0
	}
	var outside, all []int
	for p := first; p <= last; p++ {
		all = append(all, p)
		if p < low || p > high {
			outside = append(outside, p)
		}
	}
	if len(outside) < few {
		return all
	}
	return outside
}
