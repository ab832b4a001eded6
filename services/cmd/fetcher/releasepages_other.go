//go:build !linux

package main

// releaseFilePages does nothing on this system.
func releaseFilePages() {}
