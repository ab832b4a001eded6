package e2e_test

import (
	"fmt"
	"os/exec"
	"testing"
)

// gzipSizes returns how many bytes gzip makes of the sample's data at levels 1,
// 6 and 9.
func gzipSizes(t *testing.T) []float64 {
	t.Helper()
	var sizes []float64
	for _, level := range []int{1, 6, 9} {
		out, err := exec.CommandContext(t.Context(), "gzip", "-n", "-c", fmt.Sprintf("-%d", level), "../../../sample-benchmarks/compression/access.log").Output()
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, float64(len(out)))
	}
	return sizes
}
