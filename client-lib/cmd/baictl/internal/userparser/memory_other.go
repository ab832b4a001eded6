//go:build !linux

package userparser

// limitMemory does nothing: only Linux limits the memory of another process.
func limitMemory(int, uint64) {}
