//go:build !linux

// Bai-pod-ship is a part of the platform's program in the pods of a benchmark.
package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	_, _ = fmt.Fprintf(os.Stderr, "bai-pod-ship: pods run on Linux only, and this is %s; use a Kubernetes cluster\n", runtime.GOOS)
	os.Exit(1)
}
