//go:build !linux

package collect

// nonblock is nothing: pods run on Linux.
const nonblock = 0
