//go:build !linux

package main

// releasePages does nothing: only Linux tells which pages are those of a file.
func releasePages() {}
