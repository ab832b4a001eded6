//go:build !linux

// Bai-pod-ship is the platform's one program in a benchmark's pod.
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
